package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file has the aims with another Redlock client.

// foreign: a mutex shared with another Redlock client, while nothing fails.
var foreign = generator{
	name: "foreign",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1+r.IntN(3))
		s.capacity, s.weights = 1, []uint64{1}
		s.tail = min(s.tail, s.nodeTimeout/8)
		s.hold, s.think = s.ttl/time.Duration(2+r.IntN(50)), s.ttl/time.Duration(2+r.IntN(50))
		s.length = 10 * s.ttl
	},
	plan: func(w *world) {
		w.at(w.delay, newRival(w, false).try)
		w.allLoop()
	},
}

// shared: a mutex shared with another Redlock client, and everything fails that
// Redlock bears. It does not bear a node that forgets, in a restart or because
// its clock jumps: the other client does not know of guard times.
var shared = generator{
	name: "shared",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2+r.IntN(3))
		s.nodes = [...]int{1, 3, 3, 3, 4, 5}[r.IntN(6)]
		s.capacity, s.weights = 1, []uint64{1}
		s.shortHold, s.faithful = true, true
		s.tryEvery, s.cancelEvery = r.IntN(2)*4, r.IntN(2)*4
		s.latePush = 1 + r.IntN(8)
		s.hold, s.think = s.ttl/time.Duration(2+r.IntN(50)), s.ttl/time.Duration(2+r.IntN(50))
		s.length = 12 * s.ttl
	},
	plan: func(w *world) {
		w.at(w.delay, newRival(w, true).try)
		w.allLoop()
		w.randomFaults(2 + w.rng.IntN(12))
	},
}

// overdue: e waits on a and b. The holder leaves a, and a's push for e is under
// way until e's lease there has ended, and the rival has taken the keys of a
// and c. Then e comes back on a, and b votes for it.
var overdue = generator{
	name: "overdue",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights = 1, []uint64{1}
		s.length = 8 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		pd, pe := w.procs[0], w.procs[1]
		d, e := pd.parts[0], pe.parts[0]
		r := newRival(w, false)
		r.lease = 6 * w.ttl
		set := 0
		take := func(n *node) func() {
			return func() {
				if n.setPlain("rival", r.lease) {
					set++
				}
			}
		}
		w.lateMessages = false
		pe.cut(c)
		w.then(w.delay, func() { d.acquire(false) })
		w.once(holds(d), w.ttl, w.nodeTimeout, func() { e.acquire(false) })
		w.then(2*w.nodeTimeout, func() {
			pd.cut(b) // the leave comes late there
			a.keep = pe
			d.release()
		})
		var began protocol.Time
		w.then(w.around(w.slowest()), func() {
			pe.cut(a)
			began = r.local(w.now)
			take(c)()
		})
		w.then(w.around(w.nodeTimeout), func() { pe.to(c).heal(w.rng.IntN(2) == 0) })
		w.then(w.ttl+w.ttl/50, func() {
			take(a)()
			if set == 2 {
				w.log("the rival holds")
				r.holds(r.end(began))
			}
		})
		w.then(w.around(w.nodeTimeout/4), func() { pe.to(a).heal(w.rng.IntN(2) == 0) })
		w.then(time.Duration(w.rng.Int64N(int64(w.nodeTimeout/2))), a.deliver)
		w.then(w.around(w.nodeTimeout), func() { pd.mend(b) })
		w.once(holds(e), w.ttl, 0, func() {})
	},
}

// barred: another client's key stays at one node, and of two waiters each is
// ahead at one of the others.
var barred = generator{
	name: "barred",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights = 1, []uint64{1}
		s.hold, s.think = s.ttl/20, 8*s.ttl
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		first, second := w.procs[0], w.procs[1]
		e, f := first.parts[0], second.parts[0]
		a.setPlain("a key that stays", 0)
		first.cut(c)
		second.cut(b)
		w.then(w.delay, func() {
			e.acquire(false)
			f.acquire(false)
		})
		w.then(w.slowest(), func() {
			first.mend(c)
			second.mend(b)
		})
		w.once(func() bool { return holds(e)() || holds(f)() }, w.ttl, 0, func() {
			if !holds(e)() && !holds(f)() {
				w.fail("stuck", "neither %s nor %s is served, though two nodes are free", e.name, f.name)
			}
			a.delPlain("")
		})
	},
}

// bygone: the rival holds by the keys of a and b, and b forgets. Claims come
// that a is barred to. They get the votes of b and c when b's guard time is
// over, and the rival's expiry is below that.
var bygone = generator{
	name: "bygone",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights = 1, []uint64{1}
		s.expiry = s.guard * time.Duration(50+r.IntN(46)) / 100
		s.length = 4 * s.guard
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b := ns[0], ns[1]
		e := w.procs[0].parts[0]
		r := newRival(w, false)
		r.lease = w.expiry
		w.then(w.delay, func() {
			began := r.local(w.now)
			for _, n := range []*node{a, b} {
				n.setPlain("rival", r.lease)
			}
			w.log("the rival holds")
			r.holds(r.end(began))
		})
		w.then(w.around(w.nodeTimeout), func() { w.wipe(b, false) })
		w.then(w.around(w.guard/4), func() { e.acquire(false) })
		w.once(holds(e), 2*w.guard, w.around(w.nodeTimeout), e.release)
	},
}
