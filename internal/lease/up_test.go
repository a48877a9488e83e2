package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// A subscription that comes back while the join is out: the vote may have been
// pushed between the join and the subscription, and its answer does not have
// it.
func TestUpWhileARequestIsOut(t *testing.T) {
	t.Parallel()
	c := NewClaim(Config{
		Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3,
		NodeTimeout: time.Minute, Drift: time.Second,
	})
	c.Start(1, 64, 0, 0)
	joins := c.Out
	c.Out = nil
	for i := range 3 {
		c.Up(2, i)
	}
	for _, r := range joins {
		c.Answer(3, r, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: r.Ticket})
	}
	if len(c.Out) != 3 {
		t.Fatalf("after the answers without a vote: %v, want a beat to every node", c.Out)
	}
	for _, r := range c.Out {
		if r.Op != protocol.OpBeat {
			t.Errorf("%v, want a beat", r)
		}
	}
	beats := c.Out
	c.Out = nil
	for _, r := range beats {
		c.Answer(4, r, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: r.Ticket})
	}
	if len(c.Out) != 0 {
		t.Errorf("once is enough, but there is also %v", c.Out)
	}
}
