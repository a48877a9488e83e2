package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in this file walk towards clocks that are judged wrongly.

// doubt: a holder has two nodes of three, or the only one, and the clock of one
// of them jumps ahead. Another client waits for it, or comes then. That client
// reaches too few nodes to tell whose clock it was: there is only one, or it
// cannot reach the one that would show it.
var doubt = generator{
	name: "doubt",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Nodes = 1 + 2*r.IntN(2)
		s.Length = 3*s.Guard + 4*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		holder, other := w.Procs[0], w.Procs[1]
		e, f := holder.Parts[0], other.Parts[0]
		early := w.RNG.IntN(2) == 0
		w.Then(w.NodeTimeout, func() {
			if len(ns) > 1 {
				holder.Cut(ns[2])
				other.Cut(ns[1])
			}
			e.Acquire(false)
		})
		w.Once(world.Holds(e), w.TTL, w.Around(w.Delay*4), func() {
			if early {
				f.Acquire(false)
			}
		})
		w.Then(w.Around(w.NodeTimeout), func() { ns[0].Clock.Leap(w.Around(w.TTL / time.Duration(1+w.RNG.IntN(8)))) })
		w.Then(w.Around(w.Delay*4), func() {
			if w.RNG.IntN(2) == 0 {
				holder.Cut(ns[0]) // so that it does not renew, and does not hear of it either
			}
			f.Acquire(false)
		})
		w.Once(world.Holds(f), 2*w.Guard, w.Around(w.NodeTimeout), func() {})
	},
}

// nudge: the clock of one of a holder's two nodes jumps by less than can be
// noticed, and all clocks differ as much as they may: the holder's is slow.
var nudge = generator{
	name: "nudge",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Drift, s.Late = course.ClockRate, 0
		s.Delay, s.Jitter, s.Tail = s.TTL/4000, s.TTL/4000, 0
		s.Length = 6 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		holder, other := w.Procs[0], w.Procs[1]
		holder.Clock.Rate = 1 - w.Drift
		other.Clock.Rate = 1 + w.Drift
		for _, n := range ns {
			n.Clock.Rate = 1 + w.Drift
		}
		e, f := holder.Parts[0], other.Parts[0]
		holder.Cut(ns[2])
		w.Then(w.NodeTimeout, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout), func() {
			holder.Cut(ns[0], ns[1])
			f.Acquire(false)
		})
		w.Then(time.Duration(w.RNG.Int64N(int64(w.TTL*3/4))),
			func() { ns[0].Clock.Leap(time.Duration(w.RNG.Int64N(int64(w.TTL / 50)))) })
		w.Once(world.Holds(f), 2*w.TTL, w.Around(w.NodeTimeout), func() {})
	},
}
