package core

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A client follows its set while a node is replaced, whether it decides the
// steps or learns them from the nodes. It connects to the node that enters and
// leaves the one that goes. Holds stay.
func TestClientsFollowTheirSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	set := Defaults()
	set.TTL, set.Skew, set.Guard, set.NodeTimeout = 3*time.Second, 100*time.Millisecond, 6500*time.Millisecond, 500*time.Millisecond
	open := func() *Quorum {
		q, err := New([]redis.UniversalClient{c.Node(0).Client(), c.Node(1).Client(), c.Node(2).Client()}, set)
		require.NoError(t, err)
		t.Cleanup(func() { _ = q.Close(context.Background()) })
		return q
	}
	operator, q := open(), open()
	require.NoError(t, operator.BootstrapSet(within(t)))
	require.NoError(t, q.Ready(within(t)))
	first := held(t, q, "first")
	kept := keeps(t, first)
	counts := func(q *Quorum) protocol.Stamp { return q.members.home().Stamp() }
	config := func() *protocol.Configuration { return operator.members.config.Load() }
	caughtUp := func() bool {
		r := operator.nodes.at(3).checkNode(within(t))
		return r.Err == nil && r.Recovering == 0 && r.CaughtUp
	}
	step := func(next *protocol.Configuration) {
		t.Helper()
		operator.members.change(-1, func(m *protocol.Membership) { m.Decide(next) })
		require.Eventually(t, func() bool { return counts(operator) == next.Stamp && counts(q) == next.Stamp }, time.Minute, time.Millisecond)
		kept()
		held(t, q, "other").Release()
		held(t, operator, "other").Release()
	}
	b := func() protocol.Ballot { return protocol.NewBallot(time.Now(), chance(), "") }
	change := protocol.Change{Add: []protocol.Member{{Identity: "0123456789abcdef", Addr: c.Node(3).Addr()}}, Remove: []string{c.Node(2).Addr()}}
	step(config().Begin(change, b()))
	require.Eventually(t, caughtUp, time.Minute, 10*time.Millisecond)
	step(config().Join(b()))
	require.Eventually(t, caughtUp, time.Minute, 10*time.Millisecond)
	began := time.Now() // a majority of the nodes of before serves the joint configuration
	require.Eventually(t, func() bool { return time.Since(began) > set.Guard+2*set.Skew }, time.Minute, 10*time.Millisecond)
	step(config().Finish(b()))
	gone(t, operator.nodes.at(2).ended)
	gone(t, q.nodes.at(2).ended)
	assert.Equal(t, int64(1), c.Node(3).Client().Exists(t.Context(), "first").Val())
	first.Release()
}

// leaving is a Quorum of a set of three nodes, and a configuration in which the
// third one leaves.
func leaving(t *testing.T) (q *Quorum, joint *protocol.Configuration) {
	t.Helper()
	c := redistest.Start(t, 3)
	q = idle(t, c)
	require.NoError(t, q.BootstrapSet(within(t)))
	set := q.members.config.Load()
	return q, set.Begin(protocol.Change{Remove: []string{c.Node(2).Addr()}}, protocol.NewBallot(time.Now(), chance(), ""))
}

// namesTooEarly reports whether requests name a configuration that a claim does
// not know yet.
func namesTooEarly(t *testing.T) bool {
	q, joint := leaving(t)
	h := held(t, q, "n")
	a := (*attempt)(h)
	a.mu.Lock() // it hears of nothing
	changed := make(chan struct{})
	go func() {
		q.members.change(-1, func(m *protocol.Membership) { m.Decide(joint) })
		close(changed)
	}()
	require.Eventually(t, func() bool { return q.members.config.Load().Stamp == joint.Stamp }, time.Minute, time.Millisecond)
	early := q.members.home().Stamp() == joint.Stamp
	a.mu.Unlock()
	gone(t, changed)
	require.Eventually(t, func() bool { return q.members.home().Stamp() == joint.Stamp }, time.Minute, time.Millisecond)
	h.Release()
	return early
}

func TestRequestsNameASetThatClaimsKnow(t *testing.T) {
	t.Parallel()
	assert.False(t, namesTooEarly(t))
}

// Two goroutines that learn of two steps may carry them out in either order.
// What counts is what the set is at the end.
func TestAStepThatIsCarriedOutLate(t *testing.T) {
	t.Parallel()
	q, joint := leaving(t)
	b := protocol.NewBallot(time.Now(), chance(), "")
	late := func(c *protocol.Configuration) {
		q.members.change(-1, func(m *protocol.Membership) { m.Decide(c) })
	}
	late(joint)
	n := q.nodes.at(2)
	q.members.carryOut(-1, []protocol.SetAction{{RecordStep: protocol.RecordStep{Node: 2}, Cease: true}})
	assert.False(t, n.dropped.Load(), "a member is dropped")
	late(joint.Finish(b))
	gone(t, n.ended)
	// While the members are connected to again the client is without a quorum,
	// and asks each node of its list (RuleSetAlone).
	require.Eventually(t, func() bool {
		return q.nodes.at(0).err() == nil && q.nodes.at(1).err() == nil && q.nodes.at(2).dropped.Load()
	}, time.Minute, time.Millisecond)
	q.members.carryOut(-1, []protocol.SetAction{{RecordStep: protocol.RecordStep{Node: 2}, Begin: true}})
	assert.True(t, q.nodes.at(2).dropped.Load(), "a node that has left is connected to")
	again := q.members.config.Load().Begin(protocol.Change{Add: []protocol.Member{{Identity: "0123456789abcdef", Addr: n.addr}}}, b)
	late(again)
	require.Eventually(t, func() bool { return !q.nodes.at(2).dropped.Load() }, time.Minute, time.Millisecond)
	held(t, q, "n").Release()
}
