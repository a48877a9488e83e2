package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in this file walk towards clocks that are judged wrongly.

// leap: a holder has two nodes of three, and the clock of one of them jumps
// ahead, once or while the node is within its guard time. Another client waits
// for it, or comes then.
var leap = generator{
	name: "leap",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Length = 3*s.Guard + 4*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, c := ns[0], ns[2]
		holder, other := w.Procs[0], w.Procs[1]
		e, f := holder.Parts[0], other.Parts[0]
		early, twice := w.RNG.IntN(2) == 0, w.RNG.IntN(3) == 0
		holder.Cut(c)
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.Delay*4), func() {
			if early {
				f.Acquire(false)
			}
			if twice {
				w.Wipe(a, false)
			}
		})
		w.Then(w.Around(w.NodeTimeout), func() { a.Leap(w.Around(w.Guard)) })
		w.Then(w.Around(w.Delay*4), func() {
			if !early {
				f.Acquire(false)
			}
		})
		w.Once(world.Holds(f), 2*w.Guard, w.Around(w.NodeTimeout), func() {})
	},
}

// doubt: as leap, and the other client reaches too few nodes to tell whose
// clock it was: there is only one, or it cannot reach the one that would show
// it.
var doubt = generator{
	name: "doubt",
	set: func(r *rand.Rand, s *course.Setting) {
		leap.set(r, s)
		s.Nodes = 1 + 2*r.IntN(2)
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
		w.Then(w.Around(w.NodeTimeout), func() { ns[0].Leap(w.Around(w.TTL / time.Duration(1+w.RNG.IntN(8)))) })
		w.Then(w.Around(w.Delay*4), func() {
			if w.RNG.IntN(2) == 0 {
				holder.Cut(ns[0]) // so that it does not renew, and does not hear of it either
			}
			f.Acquire(false)
		})
		w.Once(world.Holds(f), 2*w.Guard, w.Around(w.NodeTimeout), func() {})
	},
}

// nap: a client sleeps for long while it neither holds nor waits, and its
// connections come back one after the other. It is served soon then.
var nap = generator{
	name: "nap",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1)
		s.Nodes = 3 + 2*r.IntN(2)
		s.Delay, s.Jitter, s.Tail = s.NodeTimeout/20, s.NodeTimeout/20, 0
		s.Length = 4*s.Guard + 4*s.TTL
	},
	plan: func(w *trial.Schedule) {
		p, t := w.Procs[0], w.Procs[0].Parts[0]
		d := w.Guard + w.Around(w.TTL)
		w.Then(w.NodeTimeout, func() { p.Sleep(d, true) })
		w.Then(d+w.NodeTimeout, func() { t.Acquire(false) })
		w.Then(6*w.NodeTimeout, func() {
			w.ExpectHeld(t, "no other client wants it")
			t.Release()
		})
	},
}

// doze: a client's clock stands still for a moment, no longer than what it
// knows of two nodes excludes, and the third one it knows better.
var doze = generator{
	name: "doze",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1)
		s.Delay, s.Jitter, s.Tail, s.Late, s.Drift = 100*time.Microsecond, 100*time.Microsecond, 0, 0, 0
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		p := w.Procs[0]
		rtt := 4 * (w.Delay + w.Jitter)
		w.Then(w.NodeTimeout, func() {
			p.Cut(ns[1], ns[2])
		})
		w.Then(w.TTL/2+w.Around(w.TTL/4), func() { p.To(ns[0]).AskTime() })
		w.Then(rtt, func() { p.Sleep(w.TTL/200+time.Duration(w.RNG.Int64N(int64(w.TTL/200))), false) })
		w.Then(w.TTL/100+rtt, func() { p.To(ns[0]).AskTime() })
		w.Then(rtt, func() {
			p.Mend(ns[1], ns[2])
		})
	},
}

// midsleep: a client sleeps while a node has two of its requests, one sent long
// before the sleep and one just before. The node answers in the middle of the
// sleep: the second answer shows a part of it, and the first one excludes
// little. Its next answer is slow, and the one after that shows the rest.
var midsleep = generator{
	name: "midsleep",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1)
		s.Delay, s.Jitter, s.Tail = s.NodeTimeout/100, s.NodeTimeout/100, 0
		s.Length = 4*s.TTL + s.Guard
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		p := w.Procs[0]
		l := p.To(ns[0])
		d := w.TTL/8 + w.Around(w.TTL/8)
		w.Then(w.TTL/2+w.Around(w.TTL/4), func() {
			l.Cut(world.Requests)
			l.AskTime()
		})
		w.Then(d, l.AskTime)
		w.Then(w.Around(w.Delay), func() { p.Sleep(d, false) })
		w.Then(d/2+time.Duration(w.RNG.Int64N(int64(d/4))), func() { l.Heal(false) })
		w.Then(d/8, func() { l.Cut(world.Answers) })
		w.Then(d+w.NodeTimeout, func() { l.Heal(false) })
		w.Then(w.NodeTimeout, l.AskTime)
	},
}

// buffered: as doze, and an answer of the third node that was given before that
// moment is read after the other nodes have shown the time since.
var buffered = generator{
	name: "buffered",
	set:  doze.set,
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		p := w.Procs[0]
		rtt := 4 * (w.Delay + w.Jitter)
		w.Then(w.NodeTimeout, func() {
			p.Cut(ns[1], ns[2])
		})
		w.Then(w.TTL/2+w.Around(w.TTL/4), func() { p.To(ns[0]).AskTime() })
		w.Then(rtt, func() {
			p.To(ns[0]).Cut(world.Answers)
			p.To(ns[0]).AskTime()
		})
		d := w.TTL/200 + time.Duration(w.RNG.Int64N(int64(w.TTL/200)))
		w.Then(rtt, func() { p.Sleep(d, false) })
		w.Then(d+rtt, func() {
			for _, n := range ns[1:] {
				p.Mend(n)
				p.To(n).AskTime()
			}
		})
		w.Then(rtt, func() { p.Mend(ns[0]) })
		w.Then(rtt, func() { p.To(ns[0]).AskTime() })
	},
}

// overslept: a holder's machine sleeps for longer than the lease, another
// client takes over, and the first one that wakes reaches one node alone.
var overslept = generator{
	name: "overslept",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Length = 8*s.TTL + 2*s.Guard
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		p := w.Procs[0]
		e, f := p.Parts[0], w.Procs[1].Parts[0]
		d := w.TTL + w.TTL/8 + w.Around(w.TTL/2)
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout), func() { f.Acquire(false) })
		w.Then(w.NodeTimeout, func() {
			p.Cut(ns[1], ns[2])
			p.Sleep(d, w.RNG.IntN(2) == 0)
		})
		w.Once(world.Holds(f), d, 0, func() {})
		w.Then(d+2*w.TTL, func() { f.Release() })
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
		holder.Rate = 1 - w.Drift
		other.Rate = 1 + w.Drift
		for _, n := range ns {
			n.Rate = 1 + w.Drift
		}
		e, f := holder.Parts[0], other.Parts[0]
		holder.Cut(ns[2])
		w.Then(w.NodeTimeout, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout), func() {
			holder.Cut(ns[0], ns[1])
			f.Acquire(false)
		})
		w.Then(time.Duration(w.RNG.Int64N(int64(w.TTL*3/4))), func() { ns[0].Leap(time.Duration(w.RNG.Int64N(int64(w.TTL / 50)))) })
		w.Once(world.Holds(f), 2*w.TTL, w.Around(w.NodeTimeout), func() {})
	},
}
