package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Aims at nodes that lose their data or get that of an earlier moment back.

// rolling: all nodes lose their data, one after the other, each as soon as an
// onlooker finds that one more node may be restarted. The run of one name
// takes long, and a minority has the value of another name. When a node's
// guard time ends another node may hang for a moment. One process holds a lock
// all the while, and others wait for it. No process reads a record. No name is
// forgotten, the hold is not lost, and each node is caught up soon after its
// guard time.
var rolling = generator{
	name: "rolling",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 4)
		s.Capacity, s.Weights, s.Eager = 1, []uint64{1}, true
		s.Names = [...]int{9, 9, 9, 9, 9, 80}[r.IntN(6)]
		s.Delay, s.Jitter, s.Tail = min(s.Delay, time.Millisecond), min(s.Jitter, time.Millisecond), 0
		s.Nodes = [...]int{3, 3, 5}[r.IntN(3)]
		s.Turns = r.IntN(2) == 0
		s.Length = time.Duration(3*s.Nodes+1) * s.Guard
		s.Hold = 2 * s.Length
	},
	plan: func(w *trial.Schedule) {
		e, onlooker := w.Procs[0].Parts[0], w.Procs[3]
		may := false
		look := func() { onlooker.Mender.UntilSpare(w.NodeTimeout/4, func() { may = true }) }
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.NodeTimeout, func() {
			w.Procs[1].Parts[0].Acquire(false)
			w.Procs[2].Parts[0].Acquire(false)
		})
		w.Then(w.TTL, func() { w.Undecided["name 003"] = true })
		ns := w.Shuffled()
		for i, n := range ns {
			hangs := ns[(i+1)%len(ns)]
			w.Then(w.Around(w.NodeTimeout), func() {
				if i == 0 { // the run of a name goes on for another guard time after the node's
					w.Held["name 003"] = true
					w.At(2*w.Guard+w.TTL/2, func() { clear(w.Held) })
				}
				if !w.Turns {
					w.At(w.Guard-w.NodeTimeout, hangs.Pause)
					w.At(w.Guard+2*w.NodeTimeout, hangs.Resume)
				}
				w.Faults.Wipe(n, false)
				may = false
				onlooker.Later(w.NodeTimeout, look)
			})
			w.Once(func() bool { return may }, 2*w.Guard+3*w.TTL, 0, func() {
				switch {
				case !may:
					w.Fail("stuck", "node %d is not caught up", n.Index)
				case !world.Holds(e)():
					w.Fail("lost", "the hold ends as node %d, the %d. to be restarted, is back", n.Index, i+1)
				}
				w.Checks.Remember()
			})
		}
	},
}

// swapped: a is restarted with the memory of its last save, and has its guard
// time. A client holds with a and b. Then the memory of the save comes back to
// a in one run of its server, and another client wants the lock. All clients
// have met a before: one that has not cannot know that memory (protocol.md).
var swapped = generator{
	name: "swapped",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Length = s.Guard + 6*s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, c := ns[0], ns[2]
		holder, other := w.Procs[0], w.Procs[1]
		e, f := holder.Parts[0], other.Parts[0]
		w.Then(w.TTL/2, func() { // all have met a
			a.Save()
			a.Crash()
			a.Revert()
			a.Restart()
		})
		w.Then(w.TTL/2+w.Guard+w.Around(w.NodeTimeout), func() {
			holder.Cut(c)
			e.Acquire(false)
		})
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout), func() {
			a.ComeBack()
			f.Acquire(false)
		})
		w.Once(world.Holds(f), w.TTL, w.Around(w.NodeTimeout), func() {})
	},
}
