package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// The vote of a node is pushed, and the push overtakes the answer to a beat
// that the node gave before. That answer says that the node had taken a claim
// back. The vote is newer: a claim that was admitted by it goes on, and asks
// the node again. Only what that answer says, the lease, does not count.
func TestAVoteThatOvertakesTookBackStays(t *testing.T) {
	t.Parallel()
	for name, votes := range map[string]bool{"the node votes": true, "the vote is gone": false} {
		t.Run(name, func(t *testing.T) {
			const ticket = 64
			c := NewClaim(Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Second}, Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond})
			now := protocol.Time(time.Hour)
			answer := func(r protocol.Request, vote, back bool) {
				c.Answer(now, r, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: ticket, Vote: vote, TookBack: back})
			}
			take := func() []protocol.Request {
				out := append([]protocol.Request(nil), c.Out...)
				c.Out = c.Out[:0]
				return out
			}
			c.Start(now, ticket, 0, 0)
			for _, r := range take() {
				answer(r, false, false)
			}
			now = now.Add(c.interval() + 10*time.Millisecond)
			c.Tick(now)
			beats := take()
			now = now.Add(time.Millisecond)
			for i := range 2 {
				c.Push(now, i, protocol.Push{ID: c.ID, Incarnation: 1, Ticket: ticket, Vote: true})
			}
			if c.Phase() != Holding {
				t.Fatalf("phase %d: two of three nodes have pushed their votes", c.Phase())
			}
			until := c.Deadline()
			now = now.Add(time.Millisecond)
			answer(beats[0], false, true)
			if c.Phase() != Holding || c.Deadline() != until {
				t.Fatalf("phase %d until %d: what the node said before it voted ends the hold, or prolongs it", c.Phase(), c.Deadline())
			}
			again := take()
			if len(again) != 1 || again[0].Node != 0 || again[0].Op != protocol.OpBeat {
				t.Fatalf("sent %v: the node is to be asked whether it still votes", again)
			}
			now = now.Add(time.Millisecond)
			answer(again[0], votes, true)
			if held := c.Phase() == Holding; held != votes {
				t.Fatalf("phase %d, and the node votes: %v", c.Phase(), votes)
			}
		})
	}
}
