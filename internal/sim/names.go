package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Aims in which each process claims several names at once, in which processes
// close or stop renewing holds, and in which operators end holds. A process's
// names share the connections and the room at the nodes, their data is lost at
// the same moment, and each name is checked separately against what the
// protocol promises.

// severalNames is what these aims start from. The record, the number of permits
// and other Redlock clients are those of the first name.
func severalNames(r *rand.Rand, s *course.Setting) {
	s.Nodes, s.Procs = 3+2*r.IntN(2), 2+r.IntN(3)
	s.Locks = 2 + r.IntN(len(world.LockNames)-1)
	s.Parts = s.Locks * (1 + r.IntN(2))
	s.Record = s.Capacity == 1 && r.IntN(2) == 0
	s.Skew, s.Offsets = s.TTL/2, false // wall clocks differ, and stay as they are
	s.Guard = 2*s.TTL + 2*s.Skew
	s.Hold, s.Think = max(s.Hold, s.TTL/20), max(s.Think, s.TTL/20)
}

// manyNames: anything fails at any time, and in half of the schedules a node
// has room for a few requests only.
var manyNames = generator{
	name: "manyNames",
	set: func(r *rand.Rand, s *course.Setting) {
		severalNames(r, s)
		s.Window = [...]int{1, 2, 4, 0, 0, 0}[r.IntN(6)]
		s.Names = 3
		if !s.Record && !s.Counting && r.IntN(2) == 0 {
			s.Callers, s.Linger = 2, s.TTL/20
		}
		s.Length = s.Guard + 3*s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.Faults.WallsApart()
		w.AllLoop()
		w.Faults.RandomFaults(w.RNG.IntN(12))
	},
}

// manyNamesCalm: nothing fails, so every name is served promptly, whatever the
// others do.
var manyNamesCalm = generator{
	name: "manyNamesCalm",
	set: func(r *rand.Rand, s *course.Setting) {
		severalNames(r, s)
		s.Clean, s.Bootstrap, s.Record = true, true, false
		s.Tail, s.Window = min(s.Tail, s.NodeTimeout/8), 0
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.Faults.WallsApart()
		w.AllLoop()
	},
}

// closing: processes close while they hold, wait and begin, and nothing fails.
// What they leave is passed on promptly, and no node keeps anything of them.
var closing = generator{
	name: "closing",
	set: func(r *rand.Rand, s *course.Setting) {
		severalNames(r, s)
		s.Clean, s.Bootstrap, s.Record = true, true, false
		s.Tail, s.Window = min(s.Tail, s.NodeTimeout/8), 0
		s.Delay = min(s.Delay, s.NodeTimeout/16)
		s.Jitter = min(s.Jitter, s.NodeTimeout/16)
		if !s.Counting && r.IntN(2) == 0 {
			s.Callers, s.Linger = 2, s.TTL/20
		}
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.LateMessages = false
		w.Faults.WallsApart()
		w.AllLoop()
		for range 2 + w.RNG.IntN(6) {
			p := w.Procs[w.RNG.IntN(len(w.Procs))]
			w.At(time.Duration(w.RNG.Int64N(int64(w.Length))), p.Close)
		}
	},
}

// maxHolds: a holder keeps what it holds, and its renewal ends after a while.
// So does that of a claim that is handed over inside of a process, counted from
// the hand-over. Every waiter is served though no holder lets go by itself.
var maxHolds = generator{
	name: "maxHolds",
	set: func(r *rand.Rand, s *course.Setting) {
		severalNames(r, s)
		s.Procs, s.Parts, s.Locks, s.Record = 2, 1, 1, false
		s.MaxHold = s.TTL / time.Duration(1+r.IntN(4))
		if s.Counting {
			s.Capacity, s.Weights, s.Counting = 1, []uint64{1}, false
		}
		s.Callers = [...]int{0, 0, 3}[r.IntN(3)]
		s.Hold = s.TTL / 2
		s.CancelEvery, s.TryEvery = 0, 0
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.AllLoop()
		for range w.RNG.IntN(4) {
			l := w.Procs[w.RNG.IntN(len(w.Procs))].Links[w.RNG.IntN(len(w.Nodes))]
			w.At(time.Duration(w.RNG.Int64N(int64(w.Length))), l.Snap)
		}
		// One participant never lets go by itself.
		if t := w.Procs[0].Parts[0]; t.Value == nil {
			w.Then(w.Delay, func() { t.Keeps = true })
		}
	},
}

// evictions: operators end holds, by the word of one node, of some, or of all.
// Nothing else fails.
var evictions = generator{
	name: "evictions",
	set:  func(r *rand.Rand, s *course.Setting) { calm.set(r, s); s.Hold += s.TTL / 8 },
	plan: func(w *trial.Schedule) {
		w.AllLoop()
		w.Faults.EvictAtTimes(2 + w.RNG.IntN(8))
	},
}

// evictionStorm: and anything fails.
var evictionStorm = generator{
	name: "evictionStorm",
	plan: func(w *trial.Schedule) {
		storm.plan(w)
		w.Faults.EvictAtTimes(4 + w.RNG.IntN(16))
	},
}
