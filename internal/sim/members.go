package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in which processes have different lists of nodes. The lists are ABC
// and ABD.

func membersSet(r *rand.Rand, s *course.Setting) {
	plain(r, s, 2)
	s.Nodes, s.Members = 4, 3
	s.Hold = 2 * s.Guard
	s.Length = 2*s.Guard + 6*s.TTL
}

// recordings: two processes record two sets at the same moment: ABC and ABD. Each
// loses another one of the two common nodes once it counts on a set, or, in half
// of the schedules, as it records.
var recordings = generator{
	name: "recordings",
	set:  membersSet,
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		holder, other := w.Procs[0], w.Procs[1]
		holder.Follower.List, other.Follower.List = ns[:3], []*world.Node{ns[0], ns[1], ns[3]}
		w.Decisions.Assemble(false)
		early := w.RNG.IntN(2) == 0
		w.Then(w.Around(w.NodeTimeout), func() {
			holder.Parts[0].Acquire(false)
			w.At(time.Duration(w.RNG.Int64N(int64(32*w.Delay))), func() { other.Parts[0].Acquire(false) })
			if early {
				w.At(w.Around(w.NodeTimeout/8), func() { holder.Cut(ns[1]) })
				w.At(w.Around(w.NodeTimeout/8), func() { other.Cut(ns[0]) })
			}
		})
		w.Once(holder.Follower.Counts(), w.TTL, 0, func() { holder.Cut(ns[1]) })
		w.Once(other.Follower.Counts(), w.TTL, 0, func() { other.Cut(ns[0]) })
		w.Then(w.Guard+4*w.TTL, w.Decisions.SetsAgree)
	},
}

// wiped: most nodes of a set lose their data at about one time, or all, again
// and again. They come back by themselves.
var wiped = generator{
	name: "wiped",
	set: func(_ *rand.Rand, s *course.Setting) {
		s.Bootstrap = true
		s.Length = 8 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(true)
		w.AllLoop()
		for range 1 + w.RNG.IntN(3) {
			ns := w.Shuffled()
			for _, n := range ns[:len(ns)-w.RNG.IntN(w.Spare()+1)] {
				w.Then(0, func() {
					n.Crash()
					n.Forget()
					w.At(w.Around(2*w.NodeTimeout), n.Restart)
				})
			}
			w.Then(w.Around(2*w.Guard), func() {})
		}
	},
}

// recordedStorm: anything fails at any time, and the nodes are a set, or are
// recorded as one meanwhile.
var recordedStorm = generator{
	name: "recorded storm",
	plan: func(w *trial.Schedule) {
		w.Decisions.Assemble(w.RNG.IntN(2) == 0)
		w.AllLoop()
		w.Faults.RandomFaults(w.RNG.IntN(12))
	},
}
