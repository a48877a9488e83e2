package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
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
