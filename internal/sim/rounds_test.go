package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
)

// herd: so many processes join at the same moment, and some nodes are missing.
func herd(joiners, nodes, missing int) generator {
	return generator{
		name: "herd",
		set: func(r *rand.Rand, s *course.Setting) {
			*s = course.Setting{
				Nodes: nodes, Procs: joiners, Parts: 1, Capacity: 1, Weights: []uint64{1},
				TTL: 8 * time.Second, Guard: 16 * time.Second, NodeTimeout: 200 * time.Millisecond,
				Bootstrap: true, Clean: true, Eager: true, Residues: 64,
				Delay: 250 * time.Microsecond, Jitter: 500 * time.Microsecond,
				Hold: time.Millisecond, Think: time.Millisecond, Length: time.Second,
			}
		},
		plan: func(w *trial.Schedule) {
			w.Faults.Miss(missing)
			for _, p := range w.Procs {
				p.Later(time.Duration(w.RNG.Int64N(int64(time.Millisecond))), func() { p.Parts[0].Acquire(false) })
			}
		},
	}
}

// A claim settles in the rounds that protocol.md promises: means of 1.2 for 2
// simultaneous joiners, 1.4 for 4, 1.6 for 8 and 1.8 for 16, on 3 nodes and on
// 5. For 64 it is 2.2 at most.
func TestRounds(t *testing.T) {
	promised := map[int]float64{2: 1.2, 4: 1.4, 8: 1.6, 16: 1.8, 32: 1.9, 64: 2.1}
	for _, nodes := range []int{3, 5} {
		for missing := range nodes/2 + 1 {
			for _, joiners := range []int{2, 4, 8, 16, 32, 64} {
				var total course.Stats
				for seed := range uint64(100) {
					v, stats := run(herd(joiners, nodes, missing), seed, nil, nil)
					if v != nil {
						t.Fatalf("%d joiners, %d nodes, %d missing, seed %d: %v", joiners, nodes, missing, seed, v)
					}
					total.Add(stats)
				}
				mean := float64(total.Rounds) / float64(total.Admissions)
				t.Logf("%d nodes, %d missing: %2d joiners take %.2f rounds each (promised: %.1f with all nodes), %.1f "+
					"requests to each node",
					nodes, missing, joiners, mean, promised[joiners], float64(total.Requests)/float64(total.Claims*nodes))
				if missing == 0 && mean > promised[joiners]+0.1 {
					t.Errorf("%d joiners on %d nodes: %.2f rounds, more than %.1f", joiners, nodes, mean, promised[joiners])
				}
			}
		}
	}
}
