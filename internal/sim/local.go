package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// The aims in this file walk towards a local queue that lets in the wrong
// caller, or none. Callers of each process share a value.

// localCalm: callers of two or three processes want the name all the time.
// Nothing fails.
var localCalm = generator{
	name: "localCalm",
	set: func(r *rand.Rand, s *course.Setting) {
		plain(r, s, 2+r.IntN(2))
		s.Clean = true
		s.Delay = time.Duration(50+r.IntN(500)) * time.Microsecond
		s.Jitter, s.Tail, s.LatePush = s.Delay, 0, 0
		s.Callers, s.Capacity, s.Weights = 2+r.IntN(3), 1, []uint64{1}
		if r.IntN(3) > 0 {
			s.Reading, s.Capacity, s.Weights = 1+r.IntN(3), 1<<30, []uint64{1, 1 << 30}
		}
		s.Linger = [...]time.Duration{0, s.TTL / 20, 2 * s.TTL}[r.IntN(3)]
		s.Hold = s.TTL / time.Duration([...]int{2000, 200, 50}[r.IntN(3)])
		s.Think = s.Hold * time.Duration([...]int{1, 4, 40}[r.IntN(3)]) / 2
		s.TryEvery, s.CancelEvery = [...]int{0, 6}[r.IntN(2)], [...]int{0, 3}[r.IntN(2)]
		s.Length = min(s.TTL, 400*s.Hold)
	},
	plan: (*trial.Schedule).AllLoop,
}

// localOnly is what the aims start from in which one process is to be watched
// closely: messages take the same time, and so does each turn, nearly.
func localOnly(r *rand.Rand, s *course.Setting, callers int) {
	plain(r, s, 2)
	s.Clean = true
	s.Delay = time.Duration(50+r.IntN(200)) * time.Microsecond
	s.Jitter, s.Tail, s.LatePush, s.Late = 0, 0, 0, 0
	s.Callers, s.Linger, s.Capacity, s.Weights = callers, 0, 1, []uint64{1}
}

// localTokens: two callers hand the claim over until its tokens are used up.
// Then a process whose clock is behind gets the next ticket.
var localTokens = generator{
	name: "localTokens",
	set: func(r *rand.Rand, s *course.Setting) {
		localOnly(r, s, 3)
		s.Residues, s.Offsets = 2, true
		s.Skew = s.TTL / 2
		s.Guard = 2*s.TTL + 2*s.Skew
		s.Hold, s.Think = 20*time.Microsecond, 2*time.Microsecond
		s.Length = 200 * time.Millisecond
	},
	plan: func(w *trial.Schedule) {
		p, o := w.Procs[0], w.Procs[1]
		p.Wall, o.Wall = w.Skew/2, -w.Skew/2
		v := p.Parts[0].Value
		v.Loop()
		most := process.HandOvers + w.RNG.IntN(100)
		w.Once(func() bool { return v.Lease != nil && v.Lease.N > most || v.Turns > 2*most }, w.Length, 0, func() {
			o.Parts[0].Value.Callers[0].Lock(process.Write, false)
		})
	},
}

// localStopped: a process stands still just when a caller has found its claim
// admitted, for longer than its lease.
var localStopped = generator{
	name: "localStopped",
	set: func(r *rand.Rand, s *course.Setting) {
		localOnly(r, s, 2)
		s.Clean = false
		s.Length = 6 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		p := w.Procs[0]
		v := p.Parts[0].Value
		v.Callers[0].Lock(process.Write, false)
		w.Once(func() bool { return v.Getter != nil && v.Pending == nil }, w.TTL, 0, p.Pause)
		w.Then(w.TTL+w.Around(w.TTL), p.Resume)
		w.Then(w.Around(w.TTL/10), func() { v.Callers[1].Lock(process.Write, false) })
	},
}

// localRenewed: an Unlock finds the claim past its deadline, just before an
// answer that came in time is handled. Another process wants the name.
var localRenewed = generator{
	name: "localRenewed",
	set: func(r *rand.Rand, s *course.Setting) {
		localOnly(r, s, 2)
		s.Clean = false
		s.Length = 6 * s.TTL
	},
	plan: func(w *trial.Schedule) {
		v := w.Procs[0].Parts[0].Value
		c, other := v.Callers[0], w.Procs[1].Parts[0].Value.Callers[0]
		c.Keeps = true
		w.Then(w.Delay, func() { c.Lock(process.Write, false) })
		w.Once(func() bool { return c.Doing == world.Holding }, w.TTL, w.Around(w.TTL/2), func() {
			v.Stall = w.TTL
			c.Unlock()
			v.Stall = 0
		})
		w.Then(w.Around(w.Delay), func() { other.Lock(process.Write, false) })
	},
}

// localStorm: the same, and anything fails at any time.
var localStorm = generator{
	name: "localStorm",
	set: func(r *rand.Rand, s *course.Setting) {
		s.Record, s.Counting, s.Window = false, false, 0
		s.Callers, s.Capacity, s.Weights = 2+r.IntN(3), 1, []uint64{1}
		if r.IntN(3) > 0 {
			s.Reading, s.Capacity, s.Weights = 1+r.IntN(3), 1<<30, []uint64{1, 1 << 30}
		}
		s.Linger = [...]time.Duration{0, s.TTL / 20, s.TTL}[r.IntN(3)]
		s.Hold, s.Think = max(s.Hold, s.TTL/50), max(s.Think, s.TTL/50)
	},
	plan: storm.plan,
}
