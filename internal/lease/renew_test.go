package lease

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// A claim is not lost while the same q nodes answer within the node timeout,
// which is at most a quarter of the ttl, whatever the others do. A beat is
// skipped at a node whose answer is outstanding, so the outstanding request
// must be recent enough.
func TestRenewalsReachTheNodesThatAnswer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		nodes := 3 + 2*r.IntN(2)
		q := nodes/2 + 1
		c := NewClaim(Config{
			Terms: protocol.Terms{ID: protocol.ID{1, byte(seed)}, Weight: 1, Capacity: 1, TTL: 8 * time.Second},
			Nodes: uint8(nodes), NodeTimeout: 2 * time.Second, Drift: 242 * time.Millisecond,
		})
		type reply struct {
			at protocol.Time
			r  protocol.Request
		}
		var due []reply
		now := protocol.Time(time.Second)
		end := now.Add(30 * c.State.TTL)
		c.Start(now, 640, 0, 0)
		for held := false; now < end; {
			for _, q0 := range c.Out {
				limit := c.State.NodeTimeout
				if q0.Node >= q {
					if limit = 2 * c.State.TTL; r.IntN(2) == 0 {
						continue // lost
					}
				}
				due = append(due, reply{now.Add(1 + time.Duration(r.Int64N(int64(limit)))), q0})
			}
			c.Out = nil
			held = held || c.State.Phase() == Holding
			if c.State.Phase().Final() {
				t.Fatalf("seed %d: phase %d at %v, held before: %t", seed, c.State.Phase(), now, held)
			}
			next, k := c.Wake(), -1
			for i, a := range due {
				if a.at <= next {
					next, k = a.at, i
				}
			}
			if now = max(next, now); k < 0 {
				c.Tick(now)
				continue
			}
			a := due[k]
			due = append(due[:k], due[k+1:]...)
			c.Answer(now, a.r, protocol.Answer{Status: protocol.OK, Incarnation: protocol.Incarnation(a.r.Node + 1),
				Ticket: 640, Vote: true, HasTotals: true})
		}
	}
}
