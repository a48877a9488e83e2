package sim

import "math/rand/v2"

// replica: a client holds with the votes of b and c, and another one has the
// vote of a. Then c is a's replica for a moment: it has the other client's
// claim and not the holder's.
var replica = generator{
	name: "replica",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, c := ns[0], ns[2]
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		holder.cut(a)
		w.then(w.around(w.delay), func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() { f.acquire(false) })
		w.then(w.around(w.nodeTimeout), func() {
			if w.rng.IntN(2) == 0 {
				holder.cut(c)
			}
			c.copy(a)
			if w.rng.IntN(2) == 0 {
				other.to(c).snap()
			}
		})
		w.once(holds(f), w.ttl, w.around(w.nodeTimeout), func() {})
	},
}

// swapped: a is restarted with the memory of its last save, and has its guard
// time. A client holds with a and b. Then the memory of the save comes back to
// a in one run of its server, and another client wants the lock.
var swapped = generator{
	name: "swapped",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = s.guard + 6*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, c := ns[0], ns[2]
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		w.then(w.around(w.nodeTimeout), func() { // all have met a
			a.save()
			a.crash()
			a.revert()
			a.restart()
		})
		w.then(w.guard+w.around(w.nodeTimeout), func() {
			holder.cut(c)
			e.acquire(false)
		})
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() {
			a.comeBack()
			f.acquire(false)
		})
		w.once(holds(f), w.ttl, w.around(w.nodeTimeout), func() {})
	},
}
