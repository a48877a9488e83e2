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

// The aims in this file walk towards nodes that have no room for all that a
// process wants sent.

// hasty: waiters that change their minds at once, each process with room for
// one request or two at each node. Nothing fails, so nothing is left behind.
var hasty = generator{
	name: "hasty",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1+r.IntN(3))
		s.Clean = true
		s.Parts = 2 + r.IntN(2)
		s.Window = 1 + r.IntN(2)
		s.Tail = 0
		s.Delay = min(s.Delay, s.TTL/1000)
		s.Jitter = s.Delay * time.Duration(1+9*r.IntN(2))
		s.CancelEvery = 2
		s.Hold, s.Think = s.Delay, s.Delay*4
		s.Length = s.TTL / 20
	},
	plan: (*trial.Schedule).AllLoop,
}

// congested: a process holds, and so many of its participants want the same
// name that each of their requests waits for about a lease for room. The hold
// is kept. When it ends, the next one is served.
var congested = generator{
	name: "congested",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1)
		s.Parts = 12 + r.IntN(6)
		s.Window = 1
		s.NodeTimeout = s.TTL / 20
		s.Delay, s.Tail = s.TTL/20, 0
		s.Jitter = s.Delay / 4
		s.Hold, s.Think = s.Delay, s.Delay
		s.Length = 4 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		p := w.Procs[0]
		t := p.Parts[0]
		w.Then(w.Delay, func() { t.Acquire(false) })
		w.Once(world.Holds(t), w.TTL, 0, func() {
			for _, o := range p.Parts[1:] {
				o.Loop()
			}
		})
		for range 6 {
			w.Then(w.TTL/2, func() { w.ExpectHeld(t, "its renewals go first") })
		}
		w.Then(0, t.Release)
	},
}

// unplugged: as hasty, and connections break.
var unplugged = generator{
	name: "unplugged",
	set: func(r *rand.Rand, s *course.Setting) {
		hasty.set(r, s)
		s.Clean, s.CancelEvery = false, 0
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

// brimful: a process holds several claims, and each node has room for one
// request. All nodes stand still twice, with a join under way. Each time the
// renewals wait, and are sent just in time. All holds are kept, because a lease
// counts from when its request is sent.
var brimful = generator{
	name: "brimful",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1)
		s.Capacity, s.Weights = 1<<30, []uint64{1}
		s.Parts, s.ShortHold = 4+r.IntN(4), false // two of them only take the room
		s.NodeTimeout = s.TTL / 2
		s.Delay, s.Tail = s.TTL/1000, 0
		s.Jitter = s.Delay / 4
		s.Length = 6 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		parts := w.Procs[0].Parts
		holders := parts[2:]
		for _, t := range holders {
			w.Then(w.Around(w.Delay), func() { t.Acquire(false) })
		}
		w.Then(w.TTL/20, func() { w.Window = 1 })
		w.Then(w.TTL*time.Duration(50+w.RNG.IntN(50))/100, func() {})
		for i, still := range []time.Duration{50, 80} { // hundredths of a lease
			w.Once(w.Procs[0].AllAnswered, w.TTL/10, 0, func() {
				parts[i].Acquire(false)
				for _, n := range w.Nodes {
					n.Pause()
				}
			})
			w.Then(w.TTL*still/100, func() {
				for _, n := range w.Nodes {
					n.Resume()
				}
			})
			w.Then(w.TTL/20, func() {})
		}
		w.Then(w.TTL/10, func() {
			parts[0].Release()
			parts[1].Release()
			for _, t := range holders {
				w.ExpectHeld(t, "its renewals were sent in time")
				t.Release()
			}
		})
	},
}

// recordsWait: a process works on records and reads them, in addition to claims
// that wait, and each node has room for one to four requests. No more are
// unanswered, and each operation on a record is decided.
var recordsWait = generator{
	name: "recordsWait",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 1+r.IntN(2))
		s.Capacity, s.Weights, s.Record = 1, []uint64{1}, true
		s.Clean = true
		s.Parts = 2 + r.IntN(4)
		s.Window = 1 + r.IntN(4)
		s.Delay, s.Tail = min(s.Delay, s.TTL/1000), 0
		s.Jitter = s.Delay * time.Duration(1+r.IntN(4))
		s.Hold, s.Think = s.TTL/20, s.TTL/20
		s.Length = 2 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.AllLoop()
		for range 4 + w.RNG.IntN(8) {
			p := w.Procs[w.RNG.IntN(len(w.Procs))]
			w.At(time.Duration(w.RNG.Int64N(int64(w.Length))), func() {
				p.StartNamedOp(w.TTL, nil, nil, lease.RegisterOp{Op: protocol.OpRead}, func(i *world.RegisterOp, _ bool) {
					if i.Outcome() == lease.Asking {
						w.Fail("late", "%v: not decided within a ttl, though the nodes have room in time", i)
					}
				})
			})
		}
	},
}

// throng: more claims ask for permits at one moment than a node lists, and
// there is room for all of them. All are admitted.
var throng = generator{
	name: "throng",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 4)
		s.Parts, s.Portion = 5, 1 // a list of eight claims
		s.Counting, s.Weights, s.Capacity = true, []uint64{1}, uint64(20+r.IntN(3))
		s.ShortHold = false
		s.Delay, s.Tail, s.LatePush = min(s.Delay, s.TTL/10000), 0, 0
		s.Jitter = s.Delay * time.Duration(1+r.IntN(4))
		s.Length = 2 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		w.Then(w.Delay, func() {
			for _, p := range w.Procs {
				for _, t := range p.Parts {
					p.Later(time.Duration(w.RNG.Int64N(int64(w.Delay))), func() { t.Acquire(false) })
				}
			}
		})
		w.ExpectAll(w.TTL / 2)
	},
}

// patchy: as throng, where the claims come to the nodes in three orders. Each
// process reaches two nodes first, and the last one all of them. So the lists
// of its claims begin after other claims at each node, and one node has too
// many for a list.
var patchy = generator{
	name: "patchy",
	set: func(r *rand.Rand, s *course.Setting) {
		throng.set(r, s)
		s.Nodes, s.Parts, s.Residues, s.Late = 3, 6, 64, 0
		s.TTL = 8 * time.Second
		s.Skew = s.TTL / 2
		s.Guard = 2*s.TTL + 2*s.Skew
		s.Capacity = uint64(14 + r.IntN(2)) // two, two, six and four claims
		s.Length = 2 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		for i, few := range []int{2, 2, 6, 4} {
			p := w.Procs[i]
			p.Off = time.Duration(i) * w.Skew / 8
			p.Adjust()
			p.Parts = p.Parts[:few]
			if i < 3 {
				p.To(ns[i]).Cut(world.Requests)
			}
			for _, t := range p.Parts {
				w.Then(w.Delay/8, func() { t.Acquire(false) })
			}
			w.Then(4*w.Delay+2*w.Jitter, func() {})
		}
		for i, p := range w.Procs[:3] {
			w.Then(0, func() { p.Mend(ns[i]) })
		}
		w.ExpectAll(w.TTL / 2)
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

// leaveRefused: a majority of the nodes is busy with another program's script
// as the holder leaves. Another client wants the lock when that has ended.
var leaveRefused = generator{
	name: "leave refused",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2)
		s.Length = 3 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		busy := w.Shuffled()[:len(w.Nodes)/2+1]
		e, f := w.Procs[0].Parts[0], w.Procs[1].Parts[0]
		w.Then(w.Around(w.NodeTimeout), func() { e.Acquire(false) })
		w.Once(world.Holds(e), w.TTL, w.Around(w.NodeTimeout), func() {
			for _, n := range busy {
				n.Refuses(true, true)
			}
			e.Release()
		})
		w.Then(w.Around(w.NodeTimeout), func() {
			for _, n := range busy {
				n.Refuses(false, false)
			}
			f.Acquire(false)
		})
		w.Then(w.TTL/2, func() {
			if !w.Draining && f.Att != nil && !f.Att.InForce() {
				w.Fail("late", "%v is not served, though the lock has been released", f.Att)
			}
		})
	},
}
