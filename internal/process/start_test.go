package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// began is an attempt of three nodes, some of which may be unhealthy, and its
// joins.
func began(try bool, unhealthy uint32) (c *Client, n *Name, a *Attempt, joins []protocol.Request) {
	c = NewClient(ClientConfig{Nodes: 3, TTL: time.Second, NodeTimeout: time.Second, Guard: 3 * time.Second})
	n, a = &Name{Name: "n"}, new(Attempt)
	cfg := c.Config(false)
	cfg.Terms = protocol.Terms{ID: protocol.ID{1}, Weight: 1, Capacity: 1, TTL: time.Second}
	cfg.NodeTimeout, cfg.Try = 200*time.Millisecond, try
	c.Start(1, a, n, cfg, lease.Links{Unhealthy: unhealthy}, lease.Deferral{})
	joins, _ = c.Step(1, a, n)
	return c, n, a, joins
}

// held is one that two nodes have admitted.
func held(t *testing.T) (c *Client, n *Name, a *Attempt) {
	c, n, a, joins := began(false, 0)
	for i := range joins {
		a.Sent(&joins[i], true)
	}
	for _, r := range joins[:2] {
		a.Claim.Answer(2, r, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: r.Ticket, Vote: true})
	}
	require.Equal(t, lease.Holding, a.State.Phase())
	a.Out = nil
	return c, n, a
}

// An attempt whose first join waits for room begins with the first that a link
// takes.
func TestAnAttemptBeginsWithTheFirstJoinThatIsSent(t *testing.T) {
	t.Parallel()
	_, _, a, joins := began(false, 0)
	a.MarkWaiting(&joins[0])
	require.True(t, a.State.NotStarted())
	joins[1].Sent = 5
	a.Sent(&joins[1], true)
	assert.False(t, a.State.NotStarted())
	assert.Equal(t, protocol.Time(5), a.State.Began())
}

// A leave that has waited for room for a lease is not sent, and its node is not
// known to be free.
func TestALeaveThatComesTooLate(t *testing.T) {
	t.Parallel()
	c, n, a := held(t)
	a.Leave(3)
	leaves, _ := c.Step(3, a, n)
	require.Len(t, leaves, 3)
	for i := range leaves {
		a.MarkWaiting(&leaves[i])
	}
	assert.True(t, c.Sending(protocol.Time(3).Add(a.State.TTL-1), a, n, &leaves[0]))
	for i := range leaves[1:] {
		assert.False(t, c.Sending(protocol.Time(3).Add(a.State.TTL), a, n, &leaves[1+i]))
	}
	a.Fail(protocol.Time(3).Add(a.State.TTL), &leaves[0], false)
	nodes, all := a.Free()
	assert.Zero(t, nodes)
	assert.True(t, all, "nothing is waited for any more")
}

// Nodes that cannot be reached are asked, and a try does not wait for them.
func TestNodesThatAreUnhealthyAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	_, _, a, joins := began(true, 0b110)
	require.Len(t, joins, 3)
	a.Claim.Answer(2, joins[0], protocol.Answer{Status: protocol.OK, Incarnation: 1,
		Ticket: joins[0].Ticket, Vote: true})
	assert.Equal(t, lease.NoQuorum, a.State.Phase())
}

// A hold has its ticket: a node that is asked later may answer with one that is
// old by then.
func TestAnOldTicketOfAHoldIsNotDoubted(t *testing.T) {
	t.Parallel()
	c, _, a := held(t)
	old := protocol.Answer{Status: protocol.OK, Ticket: a.State.Ticket(),
		Clock: int64(a.State.Ticket()) + c.Window().Half()}
	join := protocol.Request{Op: protocol.OpJoin}
	assert.Equal(t, lease.NoDoubt, a.Claim.Answer(3, join, old))
	_, _, other, _ := began(false, 0)
	assert.Equal(t, lease.DoubtOld, other.Claim.Answer(3, join, old))
}

// A leave that a node refuses for now is sent again while the lease that it is
// to end may last, after pauses that grow. Anything else fails: the claim
// itself asks again.
func TestRefusedForNow(t *testing.T) {
	t.Parallel()
	_, _, a, joins := began(false, 0)
	a.Sent(&joins[0], true)
	assert.Zero(t, a.Refused(2, &joins[0]))
	assert.Zero(t, a.outbox.flying, "it has failed")

	_, _, a = held(t)
	a.Reached(0)
	const left = protocol.Time(10)
	a.Leave(left)
	leave := a.Out[0]
	require.Equal(t, protocol.OpLeave, leave.Op)
	assert.Equal(t, a.State.NodeTimeout/4, a.Refused(left.Add(a.State.NodeTimeout), &leave))
	assert.Equal(t, a.State.NodeTimeout/2, a.Refused(left.Add(2*a.State.NodeTimeout), &leave))
	last := left.Add(a.State.TTL * 4 / 5) // the pause, a quarter of this, ends with the lease
	assert.Positive(t, a.Refused(last-1, &leave))
	assert.Zero(t, a.outbox.ended)
	assert.Zero(t, a.Refused(last, &leave))
	assert.Equal(t, uint8(1), a.outbox.ended, "given up")
}

// Only a leave to a node that may have the claim is sent again.
func TestRefusedByANodeWithoutTheClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		join  func(c *Client, n *Name, a *Attempt, join *protocol.Request)
		again bool
	}{
		"refused": {func(_ *Client, _ *Name, a *Attempt, join *protocol.Request) { a.Refused(2, join) }, false},
		"answered": {func(c *Client, n *Name, a *Attempt, join *protocol.Request) {
			ans := protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: join.Ticket, Vote: true}
			c.Answer(2, a, n, join, &ans, protocol.Verdict{Why: protocol.Counts})
		}, true},
		"answered, and the answer does not count": {func(c *Client, n *Name, a *Attempt, join *protocol.Request) {
			c.Answer(2, a, n, join, &protocol.Answer{}, protocol.Verdict{Why: protocol.Parted})
		}, true},
		"without an answer": {func(_ *Client, _ *Name, a *Attempt, join *protocol.Request) {
			a.Fail(2, join, false)
		}, true},
		"under way": {func(*Client, *Name, *Attempt, *protocol.Request) {}, true},
		"in a batch that was answered, and again, alone": {func(_ *Client, _ *Name, a *Attempt, join *protocol.Request) {
			a.Reached(join.Node)
			a.Refused(2, join)
		}, true},
	} {
		client, n, a, joins := began(false, 0)
		a.Sent(&joins[0], true)
		c.join(client, n, a, &joins[0])
		leave := protocol.Request{Op: protocol.OpLeave, Node: joins[0].Node, Sent: 3}
		assert.Equal(t, c.again, a.Refused(3, &leave) > 0, name)
	}
}
