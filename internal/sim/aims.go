package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// What generators start from, and the aims at single rules of the protocol.

// generator makes schedules of one kind.
type generator struct {
	name string
	set  func(r *rand.Rand, s *course.Setting) // may be nil
	plan func(w *trial.Schedule)
}

// calm: nothing fails, messages are quick.
var calm = generator{
	name: "calm",
	set: func(r *rand.Rand, s *course.Setting) {
		s.Clean, s.Bootstrap = true, true
		s.Tail, s.Window = min(s.Tail, s.NodeTimeout/8), 0
		s.Length /= 2
	},
	plan: (*trial.Schedule).AllLoop,
}

// storm: anything fails at any time.
var storm = generator{
	name: "storm",
	plan: func(w *trial.Schedule) {
		w.AllLoop()
		w.Faults.RandomFaults(w.RNG.IntN(12))
		if w.RNG.IntN(2) == 0 {
			w.Faults.HarmHolders(1 + w.RNG.IntN(3))
			w.Length += w.Guard
		}
		if w.RNG.IntN(3) == 0 { // a minority stays down
			for _, n := range w.Nodes[:w.RNG.IntN(w.Spare()+1)] {
				n.Gone = true
				w.At(w.Around(w.Length/2), func() {
					if !n.Down {
						n.Crash()
					}
				})
			}
		}
	},
}

// limping: a minority of the nodes fails in every way and all the time. That
// keeps no claim waiting: the majority serves all claims about as promptly as
// ever.
var limping = generator{
	name: "limping",
	set: func(r *rand.Rand, s *course.Setting) {
		s.Nodes = [...]int{3, 3, 4, 5, 5}[r.IntN(5)]
		s.Limping, s.Bootstrap, s.Record = true, true, false
		s.Window = 0
		s.Tail, s.LatePush = min(s.Tail, s.NodeTimeout/8), 0
		s.Hold, s.Think = min(s.Hold, s.TTL/10), min(s.Think, s.TTL/10)
		s.Length = 3*s.Guard + 6*s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.LateMessages = false // each would keep the node to itself for another lease
		w.AllLoop()
		w.Faults.RandomFaults(4 + w.RNG.IntN(20))
	},
}

// Random schedules alone miss the rarest violations. An aim is a generator that
// walks towards one of them and leaves the details to chance; it shows nothing
// unless a rule is missing.

// plain is what most aims start from: a mutex on three nodes that vote.
func plain(r *rand.Rand, s *course.Setting, procs int) {
	s.Nodes, s.Procs, s.Parts = 3, procs, 1
	s.ShortHold = s.Delay/(2*time.Microsecond)%2 == 0 // in half of the schedules
	s.Capacity, s.Weights, s.Counting, s.Record = 1, []uint64{1}, false, false
	s.Bootstrap, s.Offsets = true, true
	s.Residues, s.Window = 64, 0
	s.TryEvery, s.CancelEvery = 0, 0
	s.Hold, s.Think = s.TTL/10, s.TTL/10
	if r.IntN(2) == 0 { // a read-write lock's writers: the same, without the redlock key
		s.Capacity, s.Weights = 1<<30, []uint64{1 << 30}
	}
}

// restart: a holder has a bare majority, a node of it restarts, and around the
// end of the guard time another claim comes.
var restart = generator{
	name: "restart",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Length = 3*s.Guard + 4*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		holder, other := w.Procs[0], w.Procs[1]
		e, f := holder.Parts[0], other.Parts[0]
		early := w.RNG.IntN(2) == 0
		old := w.RNG.IntN(3) == 0
		for _, n := range ns {
			n.Save()
		}
		holder.Cut(c)
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.Delay*4), func() {
			if early {
				f.Acquire(false) // waits behind e on a and b, and is first on c
			}
		})
		w.Then(w.Around(w.NodeTimeout), func() { holder.To(c).Heal(w.RNG.IntN(2) == 0) })
		w.Then(w.Around(w.NodeTimeout), func() {
			if early {
				holder.Cut(a) // or the holder would come back there first
			}
			if w.RNG.IntN(4) == 0 {
				other.Cut(b)
			}
			if !early || w.RNG.IntN(3) > 0 { // else the lease just ends there
				w.Faults.Wipe(a, old)
			}
		})
		w.Then(w.Around(w.Guard/2), func() {
			if !early {
				f.Acquire(false)
			}
		})
		w.Once(world.Holds(f), 2*w.Guard, w.Around(w.NodeTimeout), func() {})
	},
}

// cutoff: a holder or waiter is cut off, from some nodes or all, for about a
// lease, and another claim takes over.
var cutoff = generator{
	name: "cutoff",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2+r.IntN(2))
		s.Drift = course.ClockRate
		s.Late = 0
		s.Length = 10 * s.TTL
		if r.IntN(2) == 0 {
			s.Delay, s.Jitter, s.Tail = s.NodeTimeout/8, s.NodeTimeout/4, 0
		}
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		first := w.Procs[0]
		if w.RNG.IntN(2) == 0 {
			first.Clock.Rate = 1 - w.Drift
			for _, n := range ns {
				n.Clock.Rate = 1 + w.Drift
			}
		}
		if w.RNG.IntN(2) == 0 {
			first.Cut(ns[0])
		}
		spread := w.Around(4 * w.Delay)
		for i, p := range w.Procs {
			w.Then(spread*time.Duration(min(i, 1)), func() { p.Parts[0].Acquire(false) })
		}
		victim := w.Procs[w.RNG.IntN(2)]
		away := ns[w.RNG.IntN(2):]
		if w.RNG.IntN(3) == 0 {
			away = ns[:2]
		}
		w.Once(world.Holds(first.Parts[0]), w.TTL/2, time.Duration(w.RNG.Int64N(int64(w.NodeTimeout))), func() {
			for _, n := range away {
				victim.To(n).Cut(w.Faults.Directions()...)
			}
		})
		w.Then(w.Around(w.TTL/2), func() {
			if victim != first {
				first.Parts[0].Release()
			}
		})
		w.Then(w.Around(w.TTL), func() {
			for _, n := range away {
				victim.To(n).Heal(w.RNG.IntN(2) == 0)
			}
		})
		w.Then(w.Around(w.TTL), func() { victim.Parts[0].Release() })
	},
}
