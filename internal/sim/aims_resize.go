package sim

import (
	"math/rand/v2"
	"time"
)

// This file has the aims in which the number of permits changes.

// resized: nothing fails, and the number of permits goes up and down.
var resized = generator{
	name: "resized",
	set: func(r *rand.Rand, s *setting) {
		calm.set(r, s)
		s.nodes, s.procs, s.parts = 3+2*r.IntN(2), 4, 2
		s.capacity, s.weights, s.counting = 3, []uint64{1, 2}, true
		s.tryEvery, s.cancelEvery = 0, 0
		s.hold = s.ttl / 2
	},
	plan: func(w *world) {
		w.allLoop()
		w.permits.most = w.capacity
		for range 8 {
			w.at(w.around(w.length/2), func() { w.permits.resize(w, 2+w.rng.Uint64N(4), w.nodes) })
		}
	},
}

// shrunk: a majority knows that there is only one permit left; one of it
// forgets that, and the other cannot be asked for a while.
var shrunk = generator{
	name: "shrunk",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.capacity, s.weights, s.counting = 3, []uint64{1}, true
		s.hold, s.think = s.ttl, s.ttl/20
		s.length = 3 * s.guard
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b := ns[0], ns[1]
		w.allLoop()
		w.then(w.around(w.ttl), func() { w.permits.resize(w, 1, ns[:2]) })
		// Before the third node is brought the number.
		w.then(w.around(w.nodeTimeout/4), func() {
			w.wipe(a, w.rng.IntN(2) == 0)
			b.pause()
		})
		// Not for longer than the node that forgot waits to be repaired.
		w.then(w.guard+time.Duration(w.rng.Int64N(int64(w.guard/2))), b.resume)
	},
}

// raised: there is one permit; a Resize to more has reached one node and
// failed. Two processes each reach that one and one other.
var raised = generator{
	name: "raised",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights, s.counting = 3, []uint64{1}, true
		s.hold = s.ttl
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		w.then(w.delay, func() {
			w.permits.resize(w, 1, ns)
			ns[2].model.Resize(3, w.permits.at+1)
		})
		w.then(w.nodeTimeout, func() {
			for i, p := range w.procs {
				p.cut(ns[i])
				p.parts[0].loop()
			}
		})
		w.then(4*w.ttl, func() {
			for i, p := range w.procs {
				p.to(ns[i]).heal(true)
			}
		})
	},
}
