package sim

import (
	"math/rand/v2"
	"time"
)

// Random schedules alone miss the rarest violations. An aim is a generator that
// walks towards one of them and leaves the details to chance; it shows nothing
// unless a rule is missing.

// plain is what most aims start from: a mutex on three nodes that vote.
func plain(r *rand.Rand, s *setting, procs int) {
	s.nodes, s.procs, s.parts = 3, procs, 1
	s.shortHold = s.delay/(2*time.Microsecond)%2 == 0 // in half of the schedules
	s.capacity, s.weights, s.counting, s.record = 1, []uint64{1}, false, false
	s.bootstrap, s.offsets = true, true
	s.residues, s.window = 64, 0
	s.tryEvery, s.cancelEvery = 0, 0
	s.hold, s.think = s.ttl/10, s.ttl/10
	if r.IntN(2) == 0 { // a read-write lock's writers: the same, without the redlock key
		s.capacity, s.weights = 1<<30, []uint64{1 << 30}
	}
}

// restart: a holder has a bare majority, a node of it restarts, and around the
// end of the guard time another claim comes.
var restart = generator{
	name: "restart",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 3*s.guard + 4*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		early := w.rng.IntN(2) == 0
		old := w.rng.IntN(3) == 0
		for _, n := range ns {
			n.save()
		}
		holder.cut(c)
		w.then(w.delay, func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.delay*4), func() {
			if early {
				f.acquire(false) // waits behind e on a and b, and is first on c
			}
		})
		w.then(w.around(w.nodeTimeout), func() { holder.to(c).heal(w.rng.IntN(2) == 0) })
		w.then(w.around(w.nodeTimeout), func() {
			if early {
				holder.cut(a) // or the holder would come back there first
			}
			if w.rng.IntN(4) == 0 {
				other.cut(b)
			}
			if !early || w.rng.IntN(3) > 0 { // else the lease just ends there
				w.wipe(a, old)
			}
		})
		w.then(w.around(w.guard/2), func() {
			if !early {
				f.acquire(false)
			}
		})
		w.once(holds(f), 2*w.guard, w.around(w.nodeTimeout), func() {})
	},
}

// stale: an attempt that only one node has heard of waits, while another claim
// passes through the other two; one of those forgets, and then it gets there.
var stale = generator{
	name: "stale",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.skew = s.ttl / 2
		s.guard = 2*s.ttl + 2*s.skew
		s.length = s.guard + 6*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		slow, fast := w.procs[0], w.procs[1]
		slow.wall, fast.wall = -w.skew/2, w.skew/2
		fast.cut(c)
		slow.cut(a, b)
		// The attempt starts at any time from a lease before the restart to the
		// end of the guard time.
		at := w.ttl
		start := time.Duration(w.rng.Int64N(int64(w.ttl + w.guard)))
		e := slow.parts[0]
		w.at(start, func() { e.acquire(false) })
		w.at(at, func() { fast.parts[0].acquire(false) })
		w.at(at+w.nodeTimeout, func() { fast.parts[0].release() })
		w.at(at+2*w.nodeTimeout, func() { w.wipe(a, w.rng.IntN(4) == 0) })
		w.at(at+2*w.nodeTimeout+w.guard-w.around(w.nodeTimeout), func() { slow.to(a).heal(w.rng.IntN(4) == 0) })
	},
}

// cutoff: a holder or waiter is cut off, from some nodes or all, for about a
// lease, and another claim takes over.
var cutoff = generator{
	name: "cutoff",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2+r.IntN(2))
		s.drift = clockRate
		s.late = 0
		s.length = 10 * s.ttl
		if r.IntN(2) == 0 {
			s.delay, s.jitter, s.tail = s.nodeTimeout/8, s.nodeTimeout/4, 0
		}
	},
	plan: func(w *world) {
		ns := w.shuffled()
		first := w.procs[0]
		if w.rng.IntN(2) == 0 {
			first.rate = 1 - w.drift
			for _, n := range ns {
				n.rate = 1 + w.drift
			}
		}
		if w.rng.IntN(2) == 0 {
			first.cut(ns[0])
		}
		spread := w.around(4 * w.delay)
		for i, p := range w.procs {
			w.then(spread*time.Duration(min(i, 1)), func() { p.parts[0].acquire(false) })
		}
		victim := w.procs[w.rng.IntN(2)]
		away := ns[w.rng.IntN(2):]
		if w.rng.IntN(3) == 0 {
			away = ns[:2]
		}
		w.once(holds(first.parts[0]), w.ttl/2, time.Duration(w.rng.Int64N(int64(w.nodeTimeout))), func() {
			for _, n := range away {
				victim.to(n).cut(w.directions()...)
			}
		})
		w.then(w.around(w.ttl/2), func() {
			if victim != first {
				first.parts[0].release()
			}
		})
		w.then(w.around(w.ttl), func() {
			for _, n := range away {
				victim.to(n).heal(w.rng.IntN(2) == 0)
			}
		})
		w.then(w.around(w.ttl), func() { victim.parts[0].release() })
	},
}

// permits: a semaphore whose clients each cannot reach one of the nodes.
var permits = generator{
	name: "permits",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3+r.IntN(3))
		s.counting = true
		s.capacity, s.weights = 2, []uint64{1}
		if r.IntN(2) == 0 {
			s.capacity, s.weights = 3, []uint64{1, 2}
		}
		s.hold, s.think = s.ttl/4, s.ttl/20
		s.length = s.ttl * 4
	},
	plan: func(w *world) {
		for _, p := range w.procs {
			p.cut(w.nodes[w.rng.IntN(len(w.nodes))])
		}
		w.allLoop()
	},
}

// fringe: a settle is all that a node hears of a claim for long after the join,
// and then nothing more. Its lease must run from the settle.
var fringe = generator{
	name: "fringe",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.skew = s.ttl / 2
		s.delay, s.jitter, s.tail, s.late = time.Millisecond/2, time.Millisecond/2, 0, 0
		s.length = 6 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b := ns[0], ns[1]
		slow, fast := w.procs[0], w.procs[1]
		slow.wall, fast.wall = -w.skew/2, w.skew/2
		e, f := slow.parts[0], fast.parts[0]
		// The third node's fence is high, so e must settle above its T0; with
		// b's answer missing that takes a time-out.
		fast.cut(a, b)
		w.then(w.delay, func() { f.acquire(true) })
		w.then(w.nodeTimeout+4*w.delay, func() {
			slow.to(b).cut(answers)
			e.acquire(false)
		})
		w.then(w.nodeTimeout+4*w.delay, func() { slow.mend(b) })
		w.then(4*w.delay, func() {
			for _, n := range ns {
				slow.cut(n)
			}
			fast.mend(a, b)
		})
		w.then(w.nodeTimeout, func() { f.acquire(false) })
	},
}
