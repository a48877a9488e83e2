package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A try waits once for a node that hangs. When other claims have made it settle
// at another ticket meanwhile, it does not wait for that node a second time.
func TestTryWaitsOnceForANodeThatHangs(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	c := NewClaim(Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3,
		NodeTimeout: timeout, Try: true})
	c.Start(1, 64, 0, 0)
	now := protocol.Time(time.Millisecond)
	c.Answer(now, protocol.Request{Node: 0, Op: protocol.OpJoin, Sent: 1},
		protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 64, Vote: true})
	c.Answer(now, protocol.Request{Node: 1, Op: protocol.OpJoin, Sent: 1},
		protocol.Answer{Status: protocol.OK, Incarnation: 2, Ticket: 128})
	c.Out = nil
	now = protocol.Time(1).Add(timeout)
	require.Equal(t, now, c.Wake())
	c.Tick(now)
	require.Equal(t, protocol.Ticket(128), c.State.Ticket(), "node 2 is silent, so the two others decide")
	for _, r := range c.Out {
		if r.Node == 0 {
			c.Answer(now+1, r, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 128, Vote: true})
		}
	}
	for !c.State.Phase().Final() {
		require.LessOrEqual(t, c.Wake(), now.Add(timeout+time.Millisecond))
		c.Tick(c.Wake())
	}
	assert.Equal(t, Busy, c.State.Phase())
}

// A node that reports a ticket of the far future draws no claim after it.
func TestForgedTicketIsNotFollowed(t *testing.T) {
	t.Parallel()
	const wall = 1_700_000_000_000_000
	for _, late := range []bool{false, true} {
		c := NewClaim(Config{
			Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: 8 * time.Second}, Nodes: 3,
			NodeTimeout: 200 * time.Millisecond, Window: protocol.WindowOf(20 * time.Second),
		})
		c.Start(1, wall, 0, 0)
		forged := protocol.Answer{Status: protocol.OK, Incarnation: 1,
			Ticket: protocol.MaxTicket - 1024, Clock: wall, Vote: true}
		if !late {
			c.Answer(2, protocol.Request{Node: 0, Op: protocol.OpJoin, Sent: 1}, forged)
		}
		c.Answer(2, protocol.Request{Node: 1, Op: protocol.OpJoin, Sent: 1},
			protocol.Answer{Status: protocol.OK, Incarnation: 2, Ticket: wall + 64, Clock: wall, Vote: true})
		c.Answer(2, protocol.Request{Node: 2, Op: protocol.OpJoin, Sent: 1},
			protocol.Answer{Status: protocol.OK, Incarnation: 3, Ticket: wall, Clock: wall, Vote: true})
		if late {
			c.Answer(2, protocol.Request{Node: 0, Op: protocol.OpJoin, Sent: 1}, forged)
		}
		assert.Equal(t, protocol.Ticket(wall+64), c.State.Ticket())
	}
}
