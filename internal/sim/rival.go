package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Aims with another Redlock client.

// foreign: a mutex shared with another Redlock client, while nothing fails.
var foreign = generator{
	name: "foreign",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1+r.IntN(3))
		s.Capacity, s.Weights = 1, []uint64{1}
		s.Tail = min(s.Tail, s.NodeTimeout/8)
		s.Hold, s.Think = s.TTL/time.Duration(2+r.IntN(50)), s.TTL/time.Duration(2+r.IntN(50))
		s.Length = 10 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.At(w.Delay, trial.NewRival(w, false).Try)
		w.AllLoop()
	},
}

// shared: a mutex shared with another Redlock client, and everything fails that
// Redlock bears. It does not bear a node that forgets, in a restart or because
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
		w.RandomFaults(2 + w.RNG.IntN(12))
	},
}

// overdue: e waits on a and b. The holder leaves a, and a's push for e is under
// way until e's lease there has ended, and the rival has taken the keys of a
// and c. Then e comes back on a, and b votes for it.
var overdue = generator{
	name: "overdue",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Capacity, s.Weights = 1, []uint64{1}
		s.Length = 8 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		pd, pe := w.Procs[0], w.Procs[1]
		d, e := pd.Parts[0], pe.Parts[0]
		r := trial.NewRival(w, false)
		r.Lease = 6 * w.TTL
		set := 0
		take := func(n *world.Node) func() {
			return func() {
				if n.SetPlain("rival", r.Lease) {
					set++
				}
			}
		}
		w.LateMessages = false
		pe.Cut(c)
		w.Then(w.Delay, func() { d.Acquire(false) })
		w.Once(world.Holds(d), w.TTL, w.NodeTimeout, func() { e.Acquire(false) })
		w.Then(2*w.NodeTimeout, func() {
			pd.Cut(b) // the leave comes late there
			a.Keep = pe
			d.Release()
		})
		var began protocol.Time
		w.Then(w.Around(w.Slowest()), func() {
			pe.Cut(a)
			began = r.Local(w.Now)
			take(c)()
		})
		w.Then(w.Around(w.NodeTimeout), func() { pe.To(c).Heal(w.RNG.IntN(2) == 0) })
		w.Then(w.TTL+w.TTL/50, func() {
			take(a)()
			if set == 2 {
				w.Log("the rival holds")
				r.Holds(r.End(began))
			}
		})
		w.Then(w.Around(w.NodeTimeout/4), func() { pe.To(a).Heal(w.RNG.IntN(2) == 0) })
		w.Then(time.Duration(w.RNG.Int64N(int64(w.NodeTimeout/2))), a.Deliver)
		w.Then(w.Around(w.NodeTimeout), func() { pd.Mend(b) })
		w.Once(world.Holds(e), w.TTL, 0, func() {})
	},
}

// barred: another client's key stays at one node, and of two waiters each is
// ahead at one of the others.
var barred = generator{
	name: "barred",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Capacity, s.Weights = 1, []uint64{1}
		s.Hold, s.Think = s.TTL/20, 8*s.TTL
		s.Length = 6 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		first, second := w.Procs[0], w.Procs[1]
		e, f := first.Parts[0], second.Parts[0]
		a.SetPlain("a key that stays", 0)
		first.Cut(c)
		second.Cut(b)
		w.Then(w.Delay, func() {
			e.Acquire(false)
			f.Acquire(false)
		})
		w.Then(w.Slowest(), func() {
			first.Mend(c)
			second.Mend(b)
		})
		w.Once(func() bool { return world.Holds(e)() || world.Holds(f)() }, w.TTL, 0, func() {
			if !world.Holds(e)() && !world.Holds(f)() {
				w.Fail("stuck", "neither %s nor %s is served, though two nodes are free", e.Name, f.Name)
			}
			a.DelPlain("")
		})
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
		w.Then(w.Around(w.NodeTimeout), func() { w.Wipe(b, false) })
		w.Then(w.Around(w.Guard/4), func() { e.Acquire(false) })
		w.Once(world.Holds(e), 2*w.Guard, w.Around(w.NodeTimeout), e.Release)
	},
}
