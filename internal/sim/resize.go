package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
)

// Aims in which the number of permits changes.

// resized: nothing fails, and the number of permits goes up and down.
var resized = generator{
	name: "resized",
	set: func(r *rand.Rand, s *course.Setting) {
		calm.set(r, s)
		s.Nodes, s.Procs, s.Parts = 3+2*r.IntN(2), 4, 2
		s.Capacity, s.Weights, s.Counting = 3, []uint64{1, 2}, true
		s.TryEvery, s.CancelEvery = 0, 0
		s.Hold = s.TTL / 2
	},
	plan: func(w *trial.Schedule) {
		w.AllLoop()
		w.Permits.Most = w.Capacity
		for range 8 {
			w.At(w.Around(w.Length/2), func() { w.Permits.Resize(w, 2+w.RNG.Uint64N(4), w.Nodes) })
		}
	},
}

// shrunk: a majority knows that there is only one permit left; one of it
// forgets that, and the other cannot be asked for a while.
var shrunk = generator{
	name: "shrunk",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 3)
		s.Capacity, s.Weights, s.Counting = 3, []uint64{1}, true
		s.Hold, s.Think = s.TTL, s.TTL/20
		s.Length = 3 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b := ns[0], ns[1]
		w.AllLoop()
		w.Then(w.Around(w.TTL), func() { w.Permits.Resize(w, 1, ns[:2]) })
		// Before the third node is brought the number.
		w.Then(w.Around(w.NodeTimeout/4), func() {
			w.Faults.Wipe(a, w.RNG.IntN(2) == 0)
			b.Pause()
		})
		// Not for longer than the node that forgot waits to be repaired.
		w.Then(w.Guard+time.Duration(w.RNG.Int64N(int64(w.Guard/2))), b.Resume)
	},
}
