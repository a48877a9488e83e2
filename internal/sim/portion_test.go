package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/trial"
	"github.com/quorate/quorate/internal/sim/world"
)

// A claim that waits behind two hundred dead ones asks a node that drops one of
// them at a time two hundred times, and is served then. That is no claim that
// spins.
func TestLongQueueTakesManySmallPortions(t *testing.T) {
	g := generator{
		name: "many claims",
		set: func(r *rand.Rand, s *course.Setting) {
			plain(r, s, 1)
			s.Nodes, s.Portion = 1, 1
			s.Delay, s.Jitter, s.Tail, s.Late = s.TTL/20000, s.TTL/20000, 0, 0
			s.Length, s.LatePush = 4*s.TTL, 0
		},
		plan: func(w *trial.Schedule) {
			n, f := w.Nodes[0], w.Procs[0].Parts[0]
			for i := range 200 {
				terms := protocol.Terms{ID: w.NewID(), Weight: w.Capacity, Capacity: w.Capacity, TTL: w.TTL}
				n.Sent++
				n.Data(0).Handle(n.Millis(), terms,
					"0", protocol.Request{Op: protocol.OpJoin, Ticket: world.Epoch + protocol.Ticket(64*i)})
			}
			w.Then(w.Delay, func() { f.Acquire(false) })
			w.Then(w.TTL+w.TTL/2, func() {
				w.Checks.ExpectHeld(f, "the leases of all before it have ended")
				f.Release()
			})
		},
	}
	for seed := range uint64(20) {
		v, stats := run(g, seed, nil, nil)
		if v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
		// A request drops one claim as it begins, and one more instead of giving it a vote.
		if stats.Requests < 100 {
			t.Fatalf("seed %d: %d requests drop 200 claims, two at a time", seed, stats.Requests)
		}
	}
}
