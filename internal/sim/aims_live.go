package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// The aims in this file walk towards a claim that is not served, not kept or
// not cleared away.

// crossing: all claims join at about the same time, and the nodes see them in
// different orders. Nothing fails.
var crossing = generator{
	name: "crossing",
	set: func(r *rand.Rand, s *setting) {
		procs := 2 + r.IntN(3)
		plain(r, s, procs)
		s.clean = true
		s.nodes = []int{3, 3, 5}[r.IntN(3)]
		s.residues = [...]int{1, 2, 64}[r.IntN(3)]
		s.delay = time.Duration(50+r.IntN(1000)) * time.Microsecond
		s.jitter, s.tail = 10*s.delay, 0
		s.hold, s.think = s.delay*time.Duration(1+r.IntN(20)), s.delay*time.Duration(1+r.IntN(20))
		s.cancelEvery = r.IntN(2) * 4
		s.length = min(s.ttl/2, 200*s.jitter)
	},
	plan: func(w *world) {
		if w.rng.IntN(2) == 0 {
			w.miss(1 + w.rng.IntN(w.spare()))
		}
		w.allLoop()
	},
}

// comesBack: a holder that one node missed, or dropped while it was cut off, is
// there soon after that node comes back, so another one may go. No claim
// contends.
var comesBack = generator{
	name: "repair",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.length = 8 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		p, t := w.procs[0], w.procs[0].parts[0]
		dropped := w.rng.IntN(2) == 0
		w.lateMessages = false // one that comes late would take the ticket
		w.then(w.delay, func() {
			if !dropped {
				p.cut(ns[2])
			}
			t.acquire(false)
		})
		w.once(holds(t), w.ttl, w.nodeTimeout, func() {
			if dropped {
				p.cut(ns[2])
			}
		})
		w.then(w.ttl+w.around(w.ttl/4), func() { p.to(ns[2]).heal(w.rng.IntN(2) == 0) })
		w.then(w.ttl, func() { ns[0].gone = true; ns[0].crash() })
		w.then(2*w.ttl, func() {
			w.expectHeld(t, "two nodes have kept it all the time")
			t.release()
		})
	},
}

// unlike: the nodes tell the holder of a permit different things, because one
// of them does not know of another holder, and so much is held that the totals
// alone do not show that there is room. Either of the others may go.
var unlike = generator{
	name: "unlike",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.counting, s.capacity, s.weights = true, 3, []uint64{1}
		s.length = 8 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		p, t, v, u := w.procs[0], w.procs[0].parts[0], w.procs[1].parts[0], w.procs[2].parts[0]
		w.then(w.delay, func() { p.cut(ns[2]); t.acquire(false) })
		w.once(holds(t), w.ttl, w.nodeTimeout, func() { v.acquire(false) })
		w.once(holds(v), w.ttl, w.nodeTimeout, func() { u.acquire(false) })
		if w.rng.IntN(2) == 0 {
			// It comes back at once, without its memory, and before u's first
			// beat.
			w.once(holds(u), w.ttl, w.nodeTimeout, func() { w.wipe(ns[0], false) })
		} else {
			w.then(w.ttl, func() {
				w.expectHeld(u, "there is a permit for it")
				ns[0].gone = true
				ns[0].crash()
			})
		}
		w.then(2*w.ttl, func() {
			w.expectHeld(u, "two nodes have kept it all the time")
			u.release()
		})
	},
}

// killed: the next in line is served as soon as a dead holder's lease ends.
var killed = generator{
	name: "killed",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.length = 6 * s.ttl
		s.tail, s.latePush = 0, 0
	},
	plan: func(w *world) {
		w.lateMessages = false
		w.miss(w.rng.IntN(2))
		first, next, last := w.procs[0], w.procs[1].parts[0], w.procs[2].parts[0]
		w.then(w.nodeTimeout, func() { first.parts[0].acquire(false) })
		w.once(holds(first.parts[0]), w.ttl, w.nodeTimeout, func() { next.acquire(false) })
		w.then(w.nodeTimeout, func() { last.acquire(false) })
		w.then(w.around(w.ttl), func() { first.crash() })
		w.then(w.ttl+w.ttl/50+w.slowest()+10*time.Millisecond, func() {
			w.expectHeld(next, "the lease of the dead holder has ended")
			next.release()
		})
		w.once(holds(last), w.slowest(), 0, func() {
			w.expectHeld(last, "the holder before it has released")
			last.release()
		})
	},
}

// settledNodeGoes: waiters cross, and then one node goes for good: those that
// were settled on it must settle on what is left.
var settledNodeGoes = generator{
	name: "settledNodeGoes",
	set: func(r *rand.Rand, s *setting) {
		crossing.set(r, s)
		s.clean, s.nodes = false, 3
	},
	plan: func(w *world) {
		w.allLoop()
		n := w.nodes[0]
		w.at(time.Duration(w.rng.Int64N(int64(w.length))), func() {
			n.gone = true
			n.crash()
		})
	},
}

// severed: of two waiters behind a holder each is settled on node a and on one
// other node, where it is ahead of the other waiter. Then a goes for good, and
// the holder leaves. The connections tell the claims that a is gone, so one of
// the two settles on the nodes that are left, long before a beat is due.
var severed = generator{
	name: "severed",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.eager, s.shortHold = true, false // e and f are to be settled where they are not cut off
		s.latePush = 0                     // else a beat may be what ends the wait
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		first, second := w.procs[1], w.procs[2]
		d, e, f := w.procs[0].parts[0], first.parts[0], second.parts[0]
		w.then(w.delay, func() { d.acquire(false) })
		w.once(holds(d), w.ttl, 0, func() {
			first.cut(c)
			second.cut(b)
			e.acquire(false)
			f.acquire(false)
		})
		w.then(w.slowest(), func() {
			first.mend(c)
			second.mend(b)
		})
		w.then(w.slowest(), func() {
			a.gone = true
			a.crash()
			d.release()
		})
		w.once(func() bool { return holds(e)() || holds(f)() }, w.nodeTimeout/2+w.slowest(), 0, func() {
			if !holds(e)() && !holds(f)() {
				w.fail("late", "neither %s nor %s is served, though both know that a node is gone", e.name, f.name)
			}
		})
	},
}

// leaveAtOnce: waiters that change their minds at once, on nodes that fail in
// nothing.
var leaveAtOnce = generator{
	name: "leaveAtOnce",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2+r.IntN(2))
		s.clean = true
		s.tail = 0
		s.cancelEvery = 2
		s.hold, s.think = s.delay, s.delay*4
		s.length = s.ttl / 20
	},
	plan: (*world).allLoop,
}

// amnesia: nodes lose their data all the time.
var amnesia = generator{
	name: "amnesia",
	set: func(r *rand.Rand, s *setting) {
		s.length = 4 * s.guard
	},
	plan: func(w *world) {
		w.allLoop()
		for range 2 + w.rng.IntN(4) {
			w.at(time.Duration(w.rng.Int64N(int64(w.length))), func() {
				w.bounce(w.nodes[w.rng.IntN(len(w.nodes))], w.delay, (*node).forget)
			})
		}
		w.randomFaults(w.rng.IntN(4))
	},
}

// joinTogether: all claims join at about the same time, pushes straggle, and
// connections break.
var joinTogether = generator{
	name: "joinTogether",
	set: func(r *rand.Rand, s *setting) {
		crossing.set(r, s)
		s.clean = false
		s.latePush, s.lag = 2, 4*s.jitter
	},
	plan: func(w *world) {
		w.allLoop()
		for range w.rng.IntN(10) {
			w.at(time.Duration(w.rng.Int64N(int64(w.length))), func() {
				w.procs[w.rng.IntN(len(w.procs))].to(w.nodes[w.rng.IntN(len(w.nodes))]).snap()
			})
		}
	},
}

// halfway: e is settled on a and b while c still has it below f, which is
// before e on a. Each is first where the other needs a vote, until e has been
// settled on c as well.
var halfway = generator{
	name: "halfway",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.skew = s.ttl / 2
		s.guard = 2*s.ttl + 2*s.skew
		s.length = 4 * s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		pe, pf, pg := w.procs[0], w.procs[1], w.procs[2]
		e, f, g := pe.parts[0], pf.parts[0], pg.parts[0]
		pe.wall, pf.wall, pg.wall = -w.skew/2, 0, w.skew/2
		w.lateMessages = false
		rtt := 4*(w.delay+w.jitter) + w.tail
		pg.cut(a) // g passes through b alone, so that e must settle above T0
		pg.cut(c)
		pe.cut(a, b)
		pf.cut(b)
		w.then(w.delay, func() { g.acquire(true) })
		w.then(w.nodeTimeout+rtt, func() { e.acquire(false) })
		w.then(w.around(rtt), func() { f.acquire(false) })
		w.then(w.around(rtt), func() {
			pe.cut(c)
			pe.mend(a, b)
		})
		w.then(w.nodeTimeout+w.around(rtt), func() { pe.to(c).heal(true) })
		w.then(w.nodeTimeout, func() { pf.to(b).heal(w.rng.IntN(2) == 0) })
	},
}

// rush: so many tries of a free name start at the same moment, and no node and
// no message fails. One of them is to be admitted.
var rush = generator{
	name: "rush",
	set: func(r *rand.Rand, s *setting) {
		*s = setting{
			nodes: 1 + r.IntN(7), procs: 2 + r.IntN(8), parts: 1, capacity: 1, weights: []uint64{1},
			ttl: 8 * time.Second, guard: 16 * time.Second, nodeTimeout: 200 * time.Millisecond,
			bootstrap: true, clean: true, eager: true, tries: true, shortHold: r.IntN(2) == 0, residues: protocol.Residues,
			delay: 100 * time.Microsecond, jitter: time.Duration(1+r.IntN(20_000)) * time.Microsecond,
			hold: 50 * time.Millisecond, think: time.Millisecond, length: time.Second,
		}
		if r.IntN(3) == 0 {
			s.capacity, s.weights = 1<<30, []uint64{1 << 30}
		}
	},
	plan: func(w *world) {
		for _, p := range w.procs {
			p.later(time.Duration(w.rng.Int64N(int64(2*w.delay+w.jitter))), func() { p.parts[0].acquire(true) })
		}
	},
}

// readers: nothing fails, and many wait for one. Each node deals with one claim
// at a time.
var readers = generator{
	name: "readers",
	set: func(r *rand.Rand, s *setting) {
		calm.set(r, s)
		s.portion, s.procs, s.parts = 1, 4, 2
		s.capacity, s.weights, s.counting = 1<<30, []uint64{1, 1, 1, 1 << 30}, false
		s.tryEvery, s.cancelEvery = 0, 0
		s.hold, s.think = s.ttl/10, s.ttl/20
	},
	plan: (*world).allLoop,
}

// queueDies: a holder and two waiters die, and each node deals with one claim
// at a time. The fourth is in when their leases have ended.
var queueDies = generator{
	name: "queueDies",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 4)
		s.portion = 1
		s.length = 6 * s.ttl
		s.tail, s.latePush = 0, 0
	},
	plan: func(w *world) {
		w.lateMessages = false
		last := w.procs[3].parts[0]
		for _, p := range w.procs {
			w.then(w.nodeTimeout, func() { p.parts[0].acquire(false) })
		}
		w.then(w.nodeTimeout, func() {
			for _, p := range w.procs[:3] {
				p.crash()
			}
		})
		w.then(w.ttl+w.ttl/50+w.slowest()+10*time.Millisecond, func() {
			w.expectHeld(last, "the leases of all before it have ended")
			last.release()
		})
	},
}
