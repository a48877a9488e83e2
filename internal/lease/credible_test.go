package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// A ticket may be ahead of the claim's by as much as the window, and by the
// time that the claim has been there. One that is old counts only in a view of
// the same incarnation whose lease runs, or alongside a quorum.
func TestWhichTicketsAreCredible(t *testing.T) {
	t.Parallel()
	const wall = protocol.Ticket(1_700_000_000_000_000)
	const later = 5 * time.Second
	window := protocol.WindowOf(20 * time.Second)
	start := func() *Claim {
		c := NewClaim(Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: 8 * time.Second}, Nodes: 3,
			NodeTimeout: time.Second, Window: window})
		c.Start(1, wall, 0, 0)
		return c
	}
	now := protocol.Time(1).Add(later)
	says := func(c *Claim, ticket protocol.Ticket, inc protocol.Incarnation) bool {
		clock := int64(wall) + later.Microseconds()
		if ticket == wall {
			clock += window.Half() // it is old
		}
		a := protocol.Answer{Status: protocol.OK, Ticket: ticket, Incarnation: inc, Clock: clock}
		return c.State.credible(now, &c.State.peers[0],
			a, c.State.doubts(protocol.Request{Op: protocol.OpJoin}, a) == DoubtOld)
	}
	top := wall + protocol.Ticket(window.Half()+later.Microseconds())
	assert.True(t, says(start(), top, 1))
	assert.False(t, says(start(), top+1, 1), "no node lets a ticket be so far ahead")

	assert.False(t, says(start(), wall, 1), "the node may have forgotten a later one")
	for _, view := range []struct {
		what string
		peer
		counts bool
	}{
		{"its lease runs", peer{held: true, ticket: wall, incarnation: 1, ackSent: 1}, true},
		{"its lease has ended", peer{held: true, ticket: wall, incarnation: 1, ackSent: now.Add(-8 * time.Second)},
			false},
		{"it is of another incarnation", peer{held: true, ticket: wall, incarnation: 2, ackSent: 1}, false},
	} {
		c := start()
		c.State.peers[0] = view.peer
		assert.Equal(t, view.counts, says(c, wall, 1), view.what)
	}
	c := start()
	c.State.peers[1] = peer{held: true, ticket: wall, incarnation: 2, ackSent: 1}
	assert.False(t, says(c, wall, 1))
	c.State.peers[2] = peer{held: true, ticket: wall, incarnation: 3, ackSent: 1}
	assert.True(t, says(c, wall, 1), "two others have it")
}

// A node that is silent is asked again after a while, and no later than with
// the next beat. A try asks once. While a node is silent T is not kept for it.
func TestASilentNode(t *testing.T) {
	t.Parallel()
	for _, try := range []bool{false, true} {
		c := NewClaim(Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: 8 * time.Second}, Nodes: 3,
			NodeTimeout: 2 * time.Second, Try: try})
		c.Start(1, 64, 0, 0)
		p := &c.State.peers[0]
		for range mostFailures + 1 {
			p.behind = true
			p.noteSilence(&c.State, 100)
			assert.False(t, p.behind)
			if try {
				assert.Equal(t, protocol.Never, p.askAt)
				continue
			}
			assert.Greater(t, p.askAt, protocol.Time(100))
			assert.LessOrEqual(t, p.askAt, protocol.Time(100).Add(c.State.interval()))
		}
	}
}

// A number stands for another member while a request to the old one is
// unanswered. The next request goes after that.
func TestANumberOfAnotherMemberIsAskedAfterTheAnswer(t *testing.T) {
	t.Parallel()
	c := started()
	join := c.Out[0]
	c.Out = nil
	c.Regroup(2, protocol.Group{Nodes: 3, Sets: protocol.Majority(3), Reassigned: 0b001})
	assert.Empty(t, c.Out)
	c.Answer(3, join, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 64, Vote: true})
	assert.Zero(t, c.State.Votes(3))
	c.Tick(4)
	if assert.Len(t, c.Out, 1) {
		assert.Equal(t, 0, c.Out[0].Node)
	}
}
