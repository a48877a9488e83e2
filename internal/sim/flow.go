package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in this file walk towards nodes that have no room for all that a
// process wants sent.

// unplugged: claims come and go fast, each process has room for one request or
// two at each node, and connections break.
var unplugged = generator{
	name: "unplugged",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1+r.IntN(3))
		s.Parts = 2 + r.IntN(2)
		s.Window = 1 + r.IntN(2)
		s.Tail = 0
		s.Delay = min(s.Delay, s.TTL/1000)
		s.Jitter = s.Delay * time.Duration(1+9*r.IntN(2))
		s.Hold, s.Think = s.Delay, s.Delay*4
		s.Length = s.TTL / 20
	},
	plan: func(w *trial.Schedule) {
		w.LateMessages = w.RNG.IntN(2) == 0
		w.AllLoop()
		for range 1 + w.RNG.IntN(8) {
			w.At(time.Duration(w.RNG.Int64N(int64(w.Length))), func() {
				w.Procs[w.RNG.IntN(len(w.Procs))].To(w.Nodes[w.RNG.IntN(len(w.Nodes))]).Snap()
			})
		}
	},
}

// flood: a process wants far more holds at one moment than its nodes can renew.
// It keeps those that it gets. The others wait at the process, some give up,
// and the rest gets holds as those end.
var flood = generator{
	name: "flood",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1)
		s.Capacity, s.Weights, s.ShortHold = 1<<30, []uint64{1}, false
		s.Parts, s.Window, s.Places = 60, 2, 1+r.IntN(8)
		s.NodeTimeout = s.TTL / 20
		s.Delay, s.Tail = s.TTL/time.Duration(40+r.IntN(40)), 0
		s.Jitter = s.Delay / 2
		s.Length = 12 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		parts := w.Procs[0].Parts
		w.Then(w.Delay, func() {
			for _, t := range parts {
				t.Acquire(false)
			}
		})
		gone := map[*world.Participant]bool{}
		w.Then(6*w.TTL, func() {
			// A claim whose joins came far apart is admitted with little left
			// of its first lease. Nothing is wrong with one that is lost so.
			if w.Stats.Lost > len(parts)/20 {
				w.Fail("lost", "%d holds, though renewals go first", w.Stats.Lost)
			}
			for _, t := range parts[len(parts)-10:] {
				t.Release()
				gone[t] = true
			}
		})
		for range 40 {
			w.Then(w.TTL/8, func() {
				for _, t := range parts {
					if t.Att != nil && t.Att.InForce() {
						gone[t] = true
						t.Release()
					}
				}
			})
		}
		w.Then(0, func() {
			if len(gone)+w.Stats.Lost < len(parts) { // a hold that was lost was one
				w.Fail("late", "%d of %d have not had a hold", len(parts)-len(gone), len(parts))
			}
		})
	},
}
