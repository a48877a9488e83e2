package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Aims with another Redlock client.

// shared: a mutex shared with another Redlock client. Nothing fails, or
// everything does that Redlock bears. It does not bear a node that forgets, in a restart or because
// its clock jumps: the other client does not know of guard times.
var shared = generator{
	name: "shared",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2+r.IntN(3))
		s.Nodes = [...]int{1, 3, 3, 3, 4, 5}[r.IntN(6)]
		s.Capacity, s.Weights = 1, []uint64{1}
		s.ShortHold, s.Faithful = true, true
		s.TryEvery, s.CancelEvery = r.IntN(2)*4, r.IntN(2)*4
		s.LatePush = 1 + r.IntN(8)
		s.Hold, s.Think = s.TTL/time.Duration(2+r.IntN(50)), s.TTL/time.Duration(2+r.IntN(50))
		s.Length = 12 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.At(w.Delay, trial.NewRival(w, true).Try)
		w.AllLoop()
		w.Faults.RandomFaults(w.RNG.IntN(14))
	},
}

// bygone: the rival holds by the keys of a and b, and b forgets. Claims come
// that a is barred to. They get the votes of b and c when b's guard time is
// over, and the rival's expiry is below that.
var bygone = generator{
	name: "bygone",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Capacity, s.Weights = 1, []uint64{1}
		s.Expiry = s.Guard * time.Duration(50+r.IntN(46)) / 100
		s.Length = 4 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b := ns[0], ns[1]
		e := w.Procs[0].Parts[0]
		r := trial.NewRival(w, false)
		r.Lease = w.Expiry
		w.Then(w.Delay, func() {
			began := r.Local(w.Now)
			for _, n := range []*world.Node{a, b} {
				n.SetPlain("rival", r.Lease)
			}
			w.Log("the rival holds")
			r.Holds(r.End(began))
		})
		w.Then(w.Around(w.NodeTimeout), func() { w.Faults.Wipe(b, false) })
		w.Then(w.Around(w.Guard/4), func() { e.Acquire(false) })
		w.Once(world.Holds(e), 2*w.Guard, w.Around(w.NodeTimeout), e.Release)
	},
}
