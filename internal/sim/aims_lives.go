package sim

import "math/rand/v2"

// The aims in which an address reaches another server, or a node has another
// one's data.

// twofold: one client's two addresses come to reach one server; another client
// holds with the two other servers.
var twofold = generator{
	name: "twofold",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 4 * s.ttl
		s.nameless = r.IntN(2) == 0
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b := ns[0], ns[1]
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		first, second := a, b // which of the two is connected first
		if w.rng.IntN(2) == 0 {
			first, second = b, a
		}
		moved := other.to(second)
		moved.snap()
		moved.point(first)
		if w.rng.IntN(2) == 0 {
			other.to(first).snap()
		}
		holder.cutOff(first)
		w.then(w.around(w.delay), func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() {
			f.acquire(false)
			// The address that votes loses its connection, and the other one is
			// the first to come back.
			w.then(w.around(w.delay*8), func() {
				other.to(first).snap()
				moved.snap() // which is connected where it is found out by answers alone that it gets no vote
				w.then(w.delay, moved.connect)
			})
		})
		w.once(holds(f), w.ttl, w.around(w.nodeTimeout), func() {})
	},
}

// moved: another client holds with two servers. This client has the vote of the
// third; then the address of that reaches a server of the holder, which is slow
// to answer, and another address reaches the third server.
var moved = generator{
	name: "moved",
	set:  twofold.set,
	plan: func(w *world) {
		ns := w.shuffled()
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		first, second := other.to(ns[0]), other.to(ns[1])
		second.snap()
		second.point(ns[0])
		second.connect() // it is refused
		holder.cutOff(ns[0])
		w.then(w.around(w.delay), func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() { f.acquire(false) })
		w.then(w.around(w.delay*8), func() {
			first.snap()
			first.point(ns[1])
			first.connect()
			first.cut(answers)
		})
		w.then(w.around(w.delay), second.connect)
		w.once(holds(f), w.ttl, w.around(w.nodeTimeout), func() {})
	},
}

// replica: a client holds with the votes of b and c, and another one has the
// vote of a. Then c is a's replica for a moment: it has the other client's
// claim and not the holder's.
var replica = generator{
	name: "replica",
	set:  twofold.set,
	plan: func(w *world) {
		ns := w.shuffled()
		a, c := ns[0], ns[2]
		holder, other := w.procs[0], w.procs[1]
		e, f := holder.parts[0], other.parts[0]
		holder.cutOff(a)
		w.then(w.around(w.delay), func() { e.acquire(false) })
		w.once(holds(e), w.ttl, w.around(w.nodeTimeout), func() { f.acquire(false) })
		w.then(w.around(w.nodeTimeout), func() {
			if w.rng.IntN(2) == 0 {
				holder.cutOff(c)
			}
			c.copy(a)
			if w.rng.IntN(2) == 0 {
				other.to(c).snap()
			}
		})
		w.once(holds(f), w.ttl, w.around(w.nodeTimeout), func() {})
	},
}

// compared: two addresses of a client reach one server, whose run is not known.
// While they are compared, the one that votes reaches another server.
var compared = generator{
	name: "compared",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 1)
		s.length, s.nameless = 2*s.ttl, true
	},
	plan: func(w *world) {
		ns := w.shuffled()
		p := w.procs[0]
		first, second := p.to(ns[0]), p.to(ns[1])
		second.snap()
		second.point(ns[0])
		w.then(w.around(w.nodeTimeout), second.connect)
		w.then(w.around(8*w.delay), func() {
			first.snap()
			first.point(ns[1])
			first.connect()
		})
		w.then(w.around(w.nodeTimeout), func() { p.parts[0].acquire(false) })
	},
}
