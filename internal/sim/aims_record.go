package sim

import "math/rand/v2"

// Aims at the record: holders that lose their claims and record all the same,
// nodes that forget, one after the other, and processes that reach only some.

// recorded: holders are cut off while they work, nodes lose what they have, and
// most of what is recorded reaches a bare majority.
var recorded = generator{
	name: "recorded",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2+r.IntN(2))
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.hold, s.think = s.ttl/2, s.ttl/4
		s.length = 4*s.guard + 8*s.ttl
	},
	plan: func(w *world) {
		w.allLoop()
		w.randomFaults(6)
		for range 6 {
			w.at(w.around(w.length/2), w.shuttle)
		}
	},
}

// belated: a holder works on after it has lost its claim, while another runs
// that did not reach all the nodes that the first one's run began on; and the
// one node that knows of both may lose that, or all, or nothing.
var belated = generator{
	name: "belated",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.hold, s.think = 2*s.guard, 4*s.ttl
		s.length = 6 * s.guard
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		first, second := w.procs[0], w.procs[1]
		e, f := first.parts[0], second.parts[0]
		memory := w.rng.IntN(3)
		first.cut(c)
		w.then(w.delay, func() { e.acquire(false) })
		w.once(begun(e), w.ttl, 0, func() {
			a.save()
			first.pause()
			if memory > 0 || w.rng.IntN(2) == 0 {
				second.cut(b)
			}
			f.acquire(false)
		})
		w.once(begun(f), 3*w.ttl, 0, func() {
			switch memory {
			case 1:
				w.wipe(a, false)
			case 2:
				w.wipe(a, true)
			}
		})
		pause := w.around(w.nodeTimeout)
		if memory > 0 {
			pause = w.guard + w.around(w.ttl/4)
		}
		w.then(pause, func() { first.resume() })
		w.then(w.around(2*w.ttl), func() { second.to(b).heal(true) })
	},
}

// begun: t knows that its run has begun.
func begun(t *participant) func() bool {
	return func() bool {
		if t.att == nil {
			return false
		}
		for _, o := range t.proc.w.ledger.opens {
			if o.run.ID == t.att.ID {
				return true
			}
		}
		return false
	}
}

// bareMajority: a bare majority has the record, one of it forgets it, and the
// other cannot be asked.
var bareMajority = generator{
	name: "bareMajority",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.hold, s.think = s.ttl/20, s.ttl
		s.length = 2*s.guard + 6*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p := w.procs[0]
		p.cut(c)
		w.then(w.delay, func() { p.parts[0].acquire(false) })
		w.once(func() bool { return w.ledger.best.Ticket > 0 }, 2*w.ttl, 0, func() {
			w.wipe(a, w.rng.IntN(2) == 0)
			b.pause()
		})
		w.then(w.guard+w.around(2*w.ttl), b.resume)
		w.then(w.around(w.ttl), func() { p.to(c).heal(w.rng.IntN(2) == 0) })
	},
}

// minority: what a holder records reaches one node; two processes read, each
// from other nodes.
var minority = generator{
	name: "minority",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.hold, s.think = s.ttl/20, s.ttl/4
		s.length = 2 * s.guard
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p := w.procs[0]
		e := p.parts[0]
		w.then(w.delay, func() { e.acquire(false) })
		w.once(begun(e), w.ttl, 0, func() {
			p.cut(b, c)
		})
		w.once(func() bool { return a.model.Recorded().Ticket > 0 }, w.ttl, 0, func() {
			p.pause()
			c.pause()
		})
		w.then(w.around(w.ttl), func() {
			c.resume()
			a.pause()
		})
		w.then(w.around(w.ttl), func() {
			a.resume()
			p.resume()
			p.mend(b)
			p.to(c).heal(true)
		})
	},
}

// runFindsMinority: what a holder records reaches one node before it dies; the
// next one begins its run there and finds it; and then others are asked.
var runFindsMinority = generator{
	name: "runFindsMinority",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.hold, s.think = s.ttl/20, s.ttl/4
		s.length = 2*s.guard + 4*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p, next := w.procs[0], w.procs[1]
		e, f := p.parts[0], next.parts[0]
		w.then(w.delay, func() { e.acquire(false) })
		w.once(begun(e), w.ttl, 0, func() {
			p.cut(b, c)
		})
		w.once(func() bool { return a.model.Recorded().Ticket > 0 }, w.ttl, 0, func() {
			p.crash()
			next.cut(c)
			f.acquire(false)
		})
		w.once(begun(f), 3*w.ttl, 0, func() {
			next.pause()
			a.pause()
		})
		w.then(w.around(2*w.ttl), func() {
			a.resume()
			next.resume()
			next.to(c).heal(true)
		})
	},
}

// openWaitsForRepair: a node forgets, and cannot be repaired with what a
// minority has while a run is under way; and too few nodes that know vote for
// that run's claim, for on one of them another is ahead that waits for it
// elsewhere.
var openWaitsForRepair = generator{
	name: "openWaitsForRepair",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.offsets = false
		s.hold, s.think = s.ttl/20, s.ttl/4
		s.length = 2*s.guard + 8*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		first, other, later := w.procs[0], w.procs[1], w.procs[2]
		d, e, f := first.parts[0], other.parts[0], later.parts[0]
		w.lateMessages = false
		w.then(w.delay, func() { d.acquire(false) })
		w.once(begun(d), w.ttl, 0, func() {
			first.cut(a, b)
			other.cut(c)
			later.cut(a, b)
		})
		w.once(func() bool { return c.model.Recorded().Ticket > 0 }, w.ttl, 0, func() {
			first.crash()
			w.wipe(b, false)
		})
		w.then(w.guard-w.ttl/2, func() { e.acquire(false) })
		w.then(w.around(w.ttl/8), func() { f.acquire(false) })
		w.once(holds(e), w.ttl, 4*w.slowest(), func() {
			later.to(a).heal(true)
			other.to(c).heal(true)
		})
		w.then(w.ttl, func() {
			if holds(e)() && !begun(e)() {
				w.fail("stuck", "%s cannot begin its run, though two nodes know all", e.name)
			}
		})
	},
}

// putForgotten: a node takes a put and forgets it; while that still counts for
// the run that has put, others take it too, of which one has just told a new
// run that it has nothing. The node that forgot is the last to promise that
// run.
var putForgotten = generator{
	name: "putForgotten",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 3)
		s.nodes = 5
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.offsets = false
		s.hold, s.think = s.ttl/20, 8*s.ttl
		s.persist = 4 * s.guard
		s.length = 3*s.guard + 4*s.ttl
	},
	plan: func(w *world) {
		ns := w.shuffled()
		b, c, x := ns[1], ns[2], ns[4]
		first, second, third := w.procs[0], w.procs[1], w.procs[2]
		e, p, f := first.parts[0], second.parts[0], third.parts[0]
		w.lateMessages = false
		for _, n := range ns {
			if n != c {
				third.cut(n)
			}
		}
		w.then(w.delay, func() { e.acquire(false) })
		w.once(begun(e), w.ttl, 0, func() {
			for _, n := range ns {
				if n != b {
					first.cut(n)
				}
			}
		})
		w.once(func() bool { return b.model.Recorded().Ticket > 0 }, w.ttl, w.nodeTimeout, func() { w.wipe(b, false) })
		w.then(w.guard-w.ttl/2-w.nodeTimeout, func() { f.acquire(false) })
		w.then(w.nodeTimeout, func() { p.acquire(false) })
		w.once(func() bool { return len(x.model.Claims(x.millis(w.now))) > 0 }, w.ttl, 0, func() { second.to(x).cut(requests) })
		w.once(holds(p), w.ttl, w.nodeTimeout/2, func() {
			second.cut(c) // which has told that it has nothing
			first.mend(c, x)
		})
		w.then(w.ttl+w.around(w.ttl), func() {
			second.to(c).heal(true)
			second.to(x).heal(true)
		})
	},
}

// stretched: one node takes a put, then forgets it and is repaired by the
// others, which know nothing of it; much later another node takes it, too.
var stretched = generator{
	name: "stretched",
	set: func(r *rand.Rand, s *setting) {
		plain(r, s, 2)
		s.capacity, s.weights, s.record = 1, []uint64{1}, true
		s.hold, s.think = s.ttl/20, s.ttl/4
		s.persist = 4 * s.guard
		s.length = 4 * s.guard
	},
	plan: func(w *world) {
		ns := w.shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p := w.procs[0]
		e := p.parts[0]
		w.then(w.delay, func() { e.acquire(false) })
		w.once(begun(e), w.ttl, 0, func() {
			p.cut(b, c)
		})
		w.once(func() bool { return a.model.Recorded().Ticket > 0 }, w.ttl, w.nodeTimeout, func() { w.wipe(a, false) })
		w.once(a.model.CaughtUp, w.guard+3*w.ttl, 0, func() { p.mend(b) })
		w.once(func() bool { return b.model.Recorded().Ticket > 0 }, w.ttl, w.nodeTimeout, func() { b.pause() })
		w.then(w.around(w.ttl), func() {
			b.resume()
			p.to(c).heal(true)
		})
	},
}
