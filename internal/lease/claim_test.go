package lease

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

func started() *Claim {
	c := NewClaim(Config{
		Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Minute}, Nodes: 3,
		NodeTimeout: time.Second, Drift: time.Second,
	})
	c.Start(1, 64, 0, 0)
	return c
}

// An attempt that has not been sent yet is not abandoned. When it is sent it
// begins, with a ticket of then, and its lease counts from then.
func TestPostponedAttempt(t *testing.T) {
	t.Parallel()
	c := started()
	joins := slices.Clone(c.Out)
	c.Out = nil
	c.State.MarkNotStarted()
	sent := protocol.Time(time.Hour)
	c.Tick(sent)
	if c.State.Phase() != Joining {
		t.Fatalf("phase %d of an attempt that has not begun", c.State.Phase())
	}
	if !c.State.NotStarted() {
		t.Fatal("it has begun")
	}
	c.State.Begin(sent, 128)
	for _, r := range joins[:2] {
		r = c.Sending(sent, r)
		if r.Ticket != 128 || r.Sent != sent {
			t.Errorf("sent as %+v", r)
		}
		c.Answer(sent+1, r, protocol.Answer{Status: protocol.OK, Incarnation: 1,
			Ticket: 128, Vote: true, HasTotals: true})
	}
	if c.State.Phase() != Holding || c.State.Ticket() != 128 {
		t.Fatalf("phase %d, ticket %d", c.State.Phase(), c.State.Ticket())
	}
	if want := sent.Add(time.Minute - time.Second); c.Deadline() != want {
		t.Errorf("held until %d, want %d", c.Deadline(), want)
	}
	// Once it has begun it is abandoned after a ttl, as any other.
	c = started()
	c.Out = nil
	c.State.MarkNotStarted()
	c.State.Begin(sent, 128)
	if c.Tick(sent.Add(time.Minute)); c.State.Phase() != Expired {
		t.Errorf("phase %d after a ttl", c.State.Phase())
	}
}

// The answer to a request that was to be repeated is the answer to the
// repetition, too: its lease counts from the request, and the node is not
// waited for any more. So it is with a failure.
func TestMergedRequest(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		c := started()
		join := c.Out[0]
		c.Out = nil
		var again *protocol.Request
		for now := protocol.Time(0); again == nil; now = c.Wake() {
			c.Tick(now)
			for _, r := range c.Out {
				if r.Node == join.Node {
					again = &r
				}
			}
			c.Out = nil
		}
		now := again.Sent + 1
		join.Merged = true
		if fails {
			c.Fail(now, join, false)
		} else {
			c.Answer(now, join, protocol.Answer{Status: protocol.OK, Incarnation: 1,
				Ticket: join.Ticket, Vote: true, HasTotals: true})
		}
		p := c.State.peers[join.Node]
		if p.pendingSince != 0 || p.held == fails || fails && (p.failures < 2 || p.askAt == protocol.Never) {
			t.Errorf("fails %v: %+v", fails, p)
		}
		if !fails && p.leaseEnds(&c.State) != join.Sent.Add(time.Minute-time.Second) {
			t.Errorf("a lease until %d counts from the repetition", p.leaseEnds(&c.State))
		}
	}
}

// What a dead connection means: the node is not one of those at which a waiter
// is settled, until it answers.
func TestDownCountsUntilAnAnswer(t *testing.T) {
	t.Parallel()
	c := started()
	joins := slices.Clone(c.Out)
	c.Out = nil
	for i, tkt := range []protocol.Ticket{64, 64, 128} {
		c.Answer(2, joins[i], protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: tkt})
	}
	if c.Out = nil; c.State.Phase() != Waiting || c.State.Ticket() != 64 {
		t.Fatalf("phase %d at %d", c.State.Phase(), c.State.Ticket())
	}
	c.Down(3, 0)
	if c.State.Ticket() != 128 || len(c.Out) == 0 {
		t.Errorf("at %d, sends %v; want a settle at 128", c.State.Ticket(), c.Out)
	}
}
