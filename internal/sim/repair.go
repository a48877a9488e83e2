package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// Aims at nodes that lose their data or get another node's data. In most aims
// at repairs, claims and records do not matter: the nodes have additional
// names, and one of the nodes loses them.

// named is what these aims start from.
func named(r *rand.Rand, s *course.Setting, procs, names int) {
	plain(r, s, procs)
	s.Capacity, s.Weights, s.Names = 1, []uint64{1}, names
	s.Eager = true
	s.Delay, s.Jitter, s.Tail = min(s.Delay, time.Millisecond), min(s.Jitter, time.Millisecond), 0
	s.Length = 4 * s.Guard
}

// repairBeforeGuardEnds: a node takes a put and forgets it. While that still
// counts for the client that put, another node takes the put, too: it is
// recorded. That one cannot be asked when the guard time of the first is over.
var repairBeforeGuardEnds = generator{
	name: "repairBeforeGuardEnds",
	set:  stretched.set,
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		p, other := w.Procs[0], w.Procs[1]
		e := p.Parts[0]
		e.Puts = true // without a run, which would have the other nodes list the name
		w.Then(w.Delay, func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, 0, func() {
			p.Cut(b, c)
			other.Cut(a)
			v := protocol.Version{Ticket: e.Att.State.Ticket(), ID: e.Att.State.ID, Seq: 1}
			p.RegisterOps.Start(e.Att, lease.RegisterOp{Op: protocol.OpPut, Stored: protocol.Stored{Version: v}}, func(*world.RegisterOp, bool) { e.Release() })
			e.Puts = false
		})
		w.Once(func() bool { return a.Model.Recorded().Ticket > 0 }, w.TTL, 4*w.Delay, func() {
			w.Faults.Wipe(a, false)
			other.To(a).Heal(true)
		})
		w.Then(2*w.NodeTimeout, func() { p.Mend(b) })
		w.Once(func() bool { return w.Ledger.Best.Ticket > 0 }, w.TTL, 0, b.Pause)
		w.Then(w.Guard+w.TTL, func() {
			b.Resume()
			p.To(c).Heal(true)
		})
	},
}

// losesDataAgain: a node lost its data and is brought all names but one, whose
// run is under way. Then it loses its data again, and its connections stay.
var losesDataAgain = generator{
	name: "losesDataAgain",
	set:  func(r *rand.Rand, s *course.Setting) { named(r, s, 1, 20); s.Hold = s.TTL / 20 },
	plan: func(w *trial.Schedule) {
		a := w.Shuffled()[0]
		p := w.Procs[0]
		w.Held["name 003"] = true
		w.Then(w.NodeTimeout, func() { w.Faults.Wipe(a, false) })
		w.Once(func() bool { return len(a.Names) == 19 }, w.Guard+w.TTL, w.NodeTimeout, func() {
			a.Forget()
			p.Parts[0].Acquire(true) // the node notices
			clear(w.Held)
		})
		w.Then(2*w.Guard, func() { w.Checks.CaughtUp(a) })
	},
}

// listerLosesData: three of five nodes have the names. One of them loses its
// data, and another one that is asked to repair it loses its data after it was
// found caught up, and before it lists names. The third cannot be asked.
var listerLosesData = generator{
	name: "listerLosesData",
	set:  func(r *rand.Rand, s *course.Setting) { named(r, s, 1, 3); s.Nodes, s.Think = 5, s.TTL/20 },
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, b, c := ns[0], ns[1], ns[2]
		clear(ns[3].Names)
		clear(ns[4].Names)
		p := w.Procs[0]
		w.Then(w.NodeTimeout, func() {
			p.Cut(c)
			w.Faults.Wipe(a, false)
		})
		looks := 0
		w.Once(func() bool { return a.TurnOf != nil }, w.Guard+w.TTL, 0, func() { looks = b.Looks })
		w.Once(func() bool { return b.Looks > looks }, w.NodeTimeout, 0, func() {
			b.Forget()
			p.Parts[0].Acquire(true) // the node notices
		})
		w.Then(2*w.TTL, func() { p.Mend(c) })
		w.Then(2*w.Guard, func() { w.Checks.CaughtUp(a) })
	},
}

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
		named(r, s, 4, [...]int{9, 9, 9, 9, 9, 80}[r.IntN(6)])
		s.Nodes = [...]int{3, 3, 5}[r.IntN(3)]
		s.Turns = r.IntN(2) == 0
		s.Length = time.Duration(3*s.Nodes+1) * s.Guard
		s.Hold = 2 * s.Length
	},
	plan: func(w *trial.Schedule) {
		e, onlooker := w.Procs[0].Parts[0], w.Procs[3]
		may := false
		var look func()
		look = func() {
			onlooker.Mender.Survey(func(ok bool) {
				if may = ok; !ok {
					onlooker.Later(w.NodeTimeout/4, look)
				}
			})
		}
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

// replica: a client holds with the votes of b and c, and another one has the
// vote of a. Then c is a's replica for a moment: it has the other client's
// claim and not the holder's.
var replica = generator{
	name: "replica",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		a, c := ns[0], ns[2]
		holder, other := w.Procs[0], w.Procs[1]
		e, f := holder.Parts[0], other.Parts[0]
		holder.Cut(a)
		w.Then(w.Around(w.Delay), func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout), func() { f.Acquire(false) })
		w.Then(w.Around(w.NodeTimeout), func() {
			if w.RNG.IntN(2) == 0 {
				holder.Cut(c)
			}
			c.Copy(a)
			if w.RNG.IntN(2) == 0 {
				other.To(c).Snap()
			}
		})
		w.Once(world.Holds(f), w.TTL, w.Around(w.NodeTimeout), func() {})
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
