package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/protocol"
)

// A claim that waits behind two hundred dead ones asks a node that drops one of
// them at a time two hundred times, and is served then. That is no claim that
// spins.
func TestLongQueueTakesManySmallPortions(t *testing.T) {
	g := generator{
		name: "many claims",
		set: func(r *rand.Rand, s *setting) {
			plain(r, s, 1)
			s.nodes, s.portion = 1, 1
			s.delay, s.jitter, s.tail, s.late = s.ttl/20000, s.ttl/20000, 0, 0
			s.length, s.latePush = 4*s.ttl, 0
		},
		plan: func(w *world) {
			n, f := w.nodes[0], w.procs[0].parts[0]
			for i := range 200 {
				terms := protocol.Terms{ID: w.newID(), Weight: w.capacity, Capacity: w.capacity, TTL: w.ttl}
				n.sent++
				n.model.Handle(n.millis(w.now), terms, "0", protocol.Request{Op: protocol.OpJoin, Ticket: epoch + protocol.Ticket(64*i)})
			}
			w.then(w.delay, func() { f.acquire(false) })
			w.then(w.ttl+w.ttl/2, func() {
				w.expectHeld(f, "the leases of all before it have ended")
				f.release()
			})
		},
	}
	for seed := range uint64(20) {
		v, stats := run(g, seed, nil, nil)
		if v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
		if stats.Requests < 200 {
			t.Fatalf("seed %d: %d requests drop 200 claims, one at a time", seed, stats.Requests)
		}
	}
}
