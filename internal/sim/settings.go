package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in which settings are not the same permanently: those of the set
// change while clients run, or each client begins with its own. A claim asks
// for no longer ttl than its set allows, as the library refuses it.

func settingsSet(r *rand.Rand, s *course.Setting) {
	s.Nodes = [...]int{1, 3, 3, 3, 5}[r.IntN(5)]
	s.Members = s.Nodes
	s.Bootstrap = true
}

// settingsChange: the guard time, the skew and with them the longest ttl become
// shorter and longer, while clients lock and anything fails.
var settingsChange = generator{
	name: "settings change",
	set: func(r *rand.Rand, s *course.Setting) {
		settingsSet(r, s)
		s.Length += 6 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(true)
		w.AllLoop()
		w.Faults.RandomFaults(w.RNG.IntN(10))
		goals := w.Operators.OtherSettings(1 + w.RNG.IntN(3))
		w.At(w.Around(w.TTL), func() {
			if !w.Draining {
				w.Procs[0].Exchange(goals...)
			}
		})
	},
}

// settingsRevert: each node keeps a file from before the change, and comes back
// with it once the change is under way or over, one node after the other.
var settingsRevert = generator{
	name: "settings revert",
	set: func(r *rand.Rand, s *course.Setting) {
		settingsSet(r, s)
		s.Nodes, s.Members = 3, 3
		s.Length += 9 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(true)
		w.AllLoop()
		operator, goals := w.Procs[0], w.Operators.OtherSettings(1+w.RNG.IntN(2))
		w.Then(w.Around(w.TTL), func() {
			for _, n := range w.Nodes {
				n.Save()
			}
			operator.Exchange(goals...)
		})
		w.Once(operator.Follower.At(2+w.RNG.Uint64N(3)), 4*w.Guard, w.Around(w.TTL), func() {})
		for _, n := range w.Shuffled() {
			w.Then(0, func() { w.Faults.Bounce(n, w.Around(w.NodeTimeout), (*world.Node).Revert) })
			w.Then(w.Operators.LongestGuard()+2*w.TTL+w.Around(w.TTL), func() {})
		}
	},
}

// settingsDiffer: each client has a ttl, a guard time and a skew of its own. The
// nodes are a set, or are recorded by whichever client comes first; they may all
// lose their data, and be recorded again by another one.
var settingsDiffer = generator{
	name: "settings differ",
	set: func(r *rand.Rand, s *course.Setting) {
		settingsSet(r, s)
		s.Least = 2 * s.TTL / 5
		s.Length += 4 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		for _, p := range w.Procs {
			p.TTL = [...]time.Duration{w.TTL, w.TTL / 2, w.Least}[w.RNG.IntN(3)]
			p.Own.Skew = w.Skew * time.Duration(w.RNG.IntN(3)) / 2
			p.Own.Guard = 2*p.TTL + 2*p.Own.Skew
			p.Own.Retention = max(w.Retention, p.Own.Guard)
		}
		w.Decisions.Assemble(w.RNG.IntN(2) == 0)
		w.AllLoop()
		w.Faults.RandomFaults(w.RNG.IntN(10))
		if w.RNG.IntN(3) == 0 {
			w.At(w.Around(2*w.Guard), func() {
				for _, n := range w.Nodes {
					if !n.Down {
						n.Crash()
						n.Forget()
						w.At(w.Around(2*w.NodeTimeout), n.Restart)
					}
				}
			})
		}
	},
}
