package sim

import (
	"math/rand/v2"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Aims at the record: holders that lose their claims and record all the same,
// nodes that forget, one after the other, and processes that reach only some.

// recorded: holders are cut off while they work, nodes lose what they have, and
// most of what is recorded reaches a bare majority.
var recorded = generator{
	name: "recorded",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2+r.IntN(2))
		s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
		s.Hold, s.Think = s.TTL/2, s.TTL/4
		s.Length = 4*s.Guard + 8*s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.AllLoop()
		w.Faults.RandomFaults(6)
		for range 6 {
			w.At(w.Around(w.Length/2), w.Faults.Shuttle)
		}
	},
}

// belated: a holder works on after it has lost its claim, while another runs
// that did not reach all the nodes that the first one's run began on; and the
// one node that knows of both may lose that, or all, or nothing.
var belated = generator{
	name: "belated",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
		s.Hold, s.Think = 2*s.Guard, 4*s.TTL
		s.Length = 6 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		first, second := w.Procs[0], w.Procs[1]
		e, f := first.Parts[0], second.Parts[0]
		memory := w.RNG.IntN(3)
		first.Cut(c)
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(begun(w, e), w.TTL, 0, func() {
			a.Save()
			first.Pause()
			if memory > 0 || w.RNG.IntN(2) == 0 {
				second.Cut(b)
			}
			f.Acquire(false)
		})
		w.Once(begun(w, f), 3*w.TTL, 0, func() {
			switch memory {
			case 1:
				w.Faults.Wipe(a, false)
			case 2:
				w.Faults.Wipe(a, true)
			}
		})
		pause := w.Around(w.NodeTimeout)
		if memory > 0 {
			pause = w.Guard + w.Around(w.TTL/4)
		}
		w.Then(pause, func() { first.Resume() })
		w.Then(w.Around(2*w.TTL), func() { second.To(b).Heal(true) })
	},
}

// begun: t knows that its run has begun.
func begun(w *trial.Schedule, t *world.Participant) func() bool {
	return func() bool {
		if t.Att == nil {
			return false
		}
		for _, o := range w.Ledger.Opens {
			if o.Run.ID == t.Att.Claim.State.ID {
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
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
		s.Hold, s.Think = s.TTL/20, s.TTL
		s.Length = 2*s.Guard + 6*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p := w.Procs[0]
		p.Cut(c)
		w.Then(w.Delay, func() { p.Parts[0].Acquire(false) })
		w.Once(func() bool { return w.Ledger.Best.Ticket > 0 }, 2*w.TTL, 0, func() {
			w.Faults.Wipe(a, w.RNG.IntN(2) == 0)
			b.Pause()
		})
		w.Then(w.Guard+w.Around(2*w.TTL), b.Resume)
		w.Then(w.Around(w.TTL), func() { p.To(c).Heal(w.RNG.IntN(2) == 0) })
	},
}

// runFindsMinority: what a holder records reaches one node before it dies; the
// next one begins its run there and finds it; and then others are asked.
var runFindsMinority = generator{
	name: "runFindsMinority",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 3)
		s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
		s.Hold, s.Think = s.TTL/20, s.TTL/4
		s.Length = 2*s.Guard + 4*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p, next := w.Procs[0], w.Procs[1]
		e, f := p.Parts[0], next.Parts[0]
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(begun(w, e), w.TTL, 0, func() {
			p.Cut(b, c)
		})
		w.Once(func() bool { return a.Data(0).Recorded().Ticket > 0 }, w.TTL, 0, func() {
			p.Crash()
			next.Cut(c)
			f.Acquire(false)
		})
		w.Once(begun(w, f), 3*w.TTL, 0, func() {
			next.Pause()
			a.Pause()
		})
		w.Then(w.Around(2*w.TTL), func() {
			a.Resume()
			next.Resume()
			next.To(c).Heal(true)
		})
	},
}

// openWaitsForRepair: a node forgets, and cannot be repaired with what a
// minority has while a run is under way; and too few nodes that know vote for
// that run's claim, for on one of them another is ahead that waits for it
// elsewhere.
var openWaitsForRepair = generator{
	name: "openWaitsForRepair",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 3)
		s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
		s.Offsets = false
		s.Hold, s.Think = s.TTL/20, s.TTL/4
		s.Length = 2*s.Guard + 8*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		first, other, later := w.Procs[0], w.Procs[1], w.Procs[2]
		d, e, f := first.Parts[0], other.Parts[0], later.Parts[0]
		w.LateMessages = false
		w.Then(w.Delay, func() { d.Acquire(false) })
		w.Once(begun(w, d), w.TTL, 0, func() {
			first.Cut(a, b)
			other.Cut(c)
			later.Cut(a, b)
		})
		w.Once(func() bool { return c.Data(0).Recorded().Ticket > 0 }, w.TTL, 0, func() {
			first.Crash()
			w.Faults.Wipe(b, false)
		})
		w.Then(w.Guard-w.TTL/2, func() { e.Acquire(false) })
		w.Then(w.Around(w.TTL/8), func() { f.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, 4*w.Slowest(), func() {
			later.To(a).Heal(true)
			other.To(c).Heal(true)
		})
		w.Then(w.TTL, func() {
			if world.Holds(e)() && !begun(w, e)() {
				w.Fail("stuck", "%s cannot begin its run, though two nodes know all", e.Name)
			}
		})
	},
}

// stretched: one node takes a put, then forgets it and is repaired by the
// others, which know nothing of it; much later another node takes it, too.
var stretched = generator{
	name: "stretched",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
		s.Hold, s.Think = s.TTL/20, s.TTL/4
		s.Persist = 4 * s.Guard
		s.Length = 4 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p := w.Procs[0]
		e := p.Parts[0]
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(begun(w, e), w.TTL, 0, func() {
			p.Cut(b, c)
		})
		w.Once(func() bool { return a.Data(0).Recorded().Ticket > 0 }, w.TTL, w.NodeTimeout,
			func() { w.Faults.Wipe(a, false) })
		w.Once(a.Model.CaughtUp, w.Guard+3*w.TTL, 0, func() { p.Mend(b) })
		w.Once(func() bool { return b.Data(0).Recorded().Ticket > 0 }, w.TTL, w.NodeTimeout, func() { b.Pause() })
		w.Then(w.Around(w.TTL), func() {
			b.Resume()
			p.To(c).Heal(true)
		})
	},
}
