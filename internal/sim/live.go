package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in this file walk towards a claim that is not served, not kept or
// not cleared away.

// crossing: all claims join at about the same time, and the nodes see them in
// different orders. Nothing fails.
var crossing = generator{
	name: "crossing",
	set: func(r *rand.Rand, s *course.Setting) {
		procs := 2 + r.IntN(3)
		plain(r, s, procs)
		s.Clean = true
		s.Nodes = []int{3, 3, 5}[r.IntN(3)]
		s.Residues = [...]int{1, 2, 64}[r.IntN(3)]
		s.Delay = time.Duration(50+r.IntN(1000)) * time.Microsecond
		s.Jitter, s.Tail = 10*s.Delay, 0
		s.Hold, s.Think = s.Delay*time.Duration(1+r.IntN(20)), s.Delay*time.Duration(1+r.IntN(20))
		s.CancelEvery = r.IntN(2) * 4
		s.Length = min(s.TTL/2, 200*s.Jitter)
	},
	plan: func(w *trial.Schedule) {
		if w.RNG.IntN(2) == 0 {
			w.Faults.Miss(1 + w.RNG.IntN(w.Spare()))
		}
		w.AllLoop()
	},
}

// unlike: the nodes tell the holder of a permit different things, because one
// of them does not know of another holder, and so much is held that the totals
// alone do not show that there is room. Either of the others may go.
var unlike = generator{
	name: "unlike",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 3)
		s.Counting, s.Capacity, s.Weights = true, 3, []uint64{1}
		s.Length = 8 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		ns := w.Shuffled()
		p, t, v, u := w.Procs[0], w.Procs[0].Parts[0], w.Procs[1].Parts[0], w.Procs[2].Parts[0]
		w.Then(w.Delay, func() { p.Cut(ns[2]); t.Acquire(false) })
		w.Once(world.Holds(t), w.TTL, w.NodeTimeout, func() { v.Acquire(false) })
		w.Once(world.Holds(v), w.TTL, w.NodeTimeout, func() { u.Acquire(false) })
		if w.RNG.IntN(2) == 0 {
			// It comes back at once, without its memory, and before u's first
			// beat.
			w.Once(world.Holds(u), w.TTL, w.NodeTimeout, func() { w.Faults.Wipe(ns[0], false) })
		} else {
			w.Then(w.TTL, func() {
				w.Checks.ExpectHeld(u, "there is a permit for it")
				ns[0].Gone = true
				ns[0].Crash()
			})
		}
		w.Then(2*w.TTL, func() {
			w.Checks.ExpectHeld(u, "two nodes have kept it all the time")
			u.Release()
		})
	},
}

// killed: a holder dies, or a holder and all but one of the claims behind it. The
// next claim that lives is served as soon as the leases of the dead end. Two to
// eleven claims wait; each node may deal with few of them at a time.
var killed = generator{
	name: "killed",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, [...]int{3, 4, 12}[r.IntN(3)])
		s.Length = 8 * s.TTL
		s.Tail, s.LatePush = 0, 0
	},
	plan: func(w *trial.Schedule) {
		w.LateMessages = false
		dead, together := w.Procs[:len(w.Procs)-1], w.RNG.IntN(2) == 0
		if len(w.Procs) == 3 {
			dead = w.Procs[:1]
			w.Faults.Miss(w.RNG.IntN(2))
		}
		next, last := w.Procs[len(dead)].Parts[0], w.Procs[len(w.Procs)-1].Parts[0]
		for i, p := range w.Procs {
			if i == 1 {
				w.Once(world.Holds(w.Procs[0].Parts[0]), w.TTL, 0, func() {})
			}
			pause := w.NodeTimeout
			if together && i > 1 && i < len(dead) {
				pause = 0
			}
			w.Then(pause, func() { p.Parts[0].Acquire(false) })
		}
		w.Then(w.Around(w.TTL), func() {
			for _, p := range dead {
				p.Crash()
			}
		})
		w.Then(w.TTL+w.TTL/50+w.Slowest()+10*time.Millisecond, func() {
			w.Checks.ExpectHeld(next, "the leases of all before it have ended")
			next.Release()
		})
		if next != last {
			w.Once(world.Holds(last), w.Slowest(), 0, func() {
				w.Checks.ExpectHeld(last, "the holder before it has released")
				last.Release()
			})
		}
	},
}

// settledNodeGoes: waiters cross, and then one node goes down permanently:
// those that were settled on it must settle on what is left.
var settledNodeGoes = generator{
	name: "settledNodeGoes",
	set: func(r *rand.Rand, s *course.Setting) {
		crossing.set(r, s)
		s.Clean, s.Nodes = false, 3
	},
	plan: func(w *trial.Schedule) {
		w.AllLoop()
		n := w.Nodes[0]
		w.At(time.Duration(w.RNG.Int64N(int64(w.Length))), func() {
			n.Gone = true
			n.Crash()
		})
	},
}

// leaveAtOnce: waiters that change their minds at once, on nodes that fail in
// nothing.
var leaveAtOnce = generator{
	name: "leaveAtOnce",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2+r.IntN(2))
		s.Clean = true
		s.Tail = 0
		s.CancelEvery = 2
		s.Hold, s.Think = s.Delay, s.Delay*4
		s.Length = s.TTL / 20
	},
	plan: (*trial.Schedule).AllLoop,
}

// amnesia: nodes lose their data all the time.
var amnesia = generator{
	name: "amnesia",
	set: func(r *rand.Rand, s *course.Setting) {
		s.Length = 4 * s.Guard
	},
	plan: func(w *trial.Schedule) {
		w.AllLoop()
		for range 2 + w.RNG.IntN(4) {
			w.At(time.Duration(w.RNG.Int64N(int64(w.Length))), func() {
				w.Faults.Bounce(w.Nodes[w.RNG.IntN(len(w.Nodes))], w.Delay, (*world.Node).Forget)
			})
		}
		w.Faults.RandomFaults(w.RNG.IntN(4))
	},
}

// rush: so many tries of a free name start at the same moment, and no node and
// no message fails. One of them is to be admitted.
var rush = generator{
	name: "rush",
	set: func(r *rand.Rand, s *course.Setting) {
		*s = course.Setting{
			Nodes: 1 + r.IntN(7), Procs: 2 + r.IntN(8), Parts: 1, Capacity: 1, Weights: []uint64{1},
			TTL: 8 * time.Second, Guard: 16 * time.Second, NodeTimeout: 200 * time.Millisecond,
			Bootstrap: true, Clean: true, Eager: true, Tries: true,
			ShortHold: r.IntN(2) == 0, Residues: protocol.Residues,
			Delay: 100 * time.Microsecond, Jitter: time.Duration(1+r.IntN(20_000)) * time.Microsecond,
			Hold: 50 * time.Millisecond, Think: time.Millisecond, Length: time.Second,
		}
		if r.IntN(3) == 0 {
			s.Capacity, s.Weights = 1<<30, []uint64{1 << 30}
		}
	},
	plan: func(w *trial.Schedule) {
		for _, p := range w.Procs {
			p.Later(time.Duration(w.RNG.Int64N(int64(2*w.Delay+w.Jitter))), func() { p.Parts[0].Acquire(true) })
		}
	},
}
