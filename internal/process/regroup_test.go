package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// waits is a claim of a set of three that waits, with the vote of node 0 alone.
// node has a node answer.
func waits(t assert.TestingT) (c *lease.Claim, now protocol.Time, node func(i int, vote bool)) {
	const ticket = 64
	c = lease.NewClaim(lease.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Second}, Nodes: 3,
		NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond})
	now = protocol.Time(time.Hour)
	c.Start(now, ticket, 0, 0)
	out := append([]protocol.Request(nil), c.Out...)
	node = func(i int, vote bool) {
		c.Answer(now, out[i], protocol.Answer{Status: protocol.OK,
			Incarnation: protocol.Incarnation(i + 1), Ticket: ticket, Vote: vote})
	}
	node(0, true)
	node(1, false)
	node(2, false)
	assert.Equal(t, lease.Waiting, c.State.Phase())
	return c, now, node
}

// numberOfAnother has a number stand for another member than the one that has
// voted.
func numberOfAnother(t assert.TestingT) {
	c, now, node := waits(t)
	c.Regroup(now.Add(1), protocol.Group{Nodes: 3, Sets: protocol.Majority(3), Reassigned: 0b001})
	node(2, true)
	assert.NotEqual(t, lease.Holding, c.State.Phase(), "the vote of one member counts as another's")
	node(0, true)
	assert.NotEqual(t, lease.Holding, c.State.Phase(), "so does an answer to what was asked before")

	c, now, node = waits(t)
	node(2, true)
	if assert.Equal(t, lease.Holding, c.State.Phase()) {
		c.Regroup(now, protocol.Group{Nodes: 3, Sets: protocol.Majority(3), Reassigned: 0b001})
		assert.Equal(t, 1, c.State.Votes(now), "a holder counts it as well")
	}
}

// recordOfAnother has a read hear a value from A, whose number stands for D
// then, which has more.
func recordOfAnother(t assert.TestingT) {
	version := func(n uint64) protocol.Stored {
		return protocol.Stored{Version: protocol.Version{Ticket: protocol.Ticket(n)}}
	}
	says := func(n uint64) protocol.Answer {
		return protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{Stored: version(n), CaughtUp: true}}
	}
	now := protocol.Time(time.Hour)
	q := &lease.RegisterOp{Op: protocol.OpRead, Nodes: 3, NodeTimeout: time.Second,
		MaxPause: time.Second, Fresh: 20 * time.Second}
	q.Start(now)
	asked := append([]protocol.Request(nil), q.Out...)
	q.Out = nil
	q.Answer(now.Add(1), asked[0], says(5))
	q.Regroup(now.Add(2), protocol.Group{Nodes: 3, Sets: protocol.Quorums{Present: 0b001},
		Absent: 0b110, Reassigned: 0b001})
	q.Answer(now.Add(3), asked[0], says(5))
	assert.Equal(t, lease.Asking, q.Outcome(), "what A has said is what D has")
	q.Tick(now.Add(4))
	if assert.NotEmpty(t, q.Out) {
		q.Answer(now.Add(5), q.Out[len(q.Out)-1], says(7))
		assert.Equal(t, lease.Settled, q.Outcome())
		assert.Equal(t, version(7), q.Newest())
	}
}

// shorterGuard has a set get a guard time that does not cover the lease.
func shorterGuard(t assert.TestingT) {
	c, now, node := waits(t)
	node(2, true)
	g := protocol.Group{Nodes: 3, Sets: protocol.Majority(3), LongestTTL: time.Second}
	c.Regroup(now, g)
	assert.Equal(t, lease.Holding, c.State.Phase())
	g.LongestTTL--
	c.Regroup(now, g)
	assert.Equal(t, lease.Lost, c.State.Phase())
}

func TestRegroup(t *testing.T) {
	t.Parallel()
	for _, test := range []func(assert.TestingT){numberOfAnother, recordOfAnother, shorterGuard} {
		test(t)
	}
	// A client that slept while its number was given again forgets what it
	// knew.
	p := newProcess(3)
	g := protocol.Group{Nodes: 32, Sets: protocol.Majority(32), Reassigned: 1 << 31}
	p.Regroup(p.now, g)
	p.Connect(p.now, 31, time.Millisecond)
	p.Show(p.now, 31, 7)
	assert.Equal(t, protocol.Incarnation(7), p.Voting(31))
	p.Connect(p.now, nodeset.Seed, time.Millisecond)
}

// An answer about a record counts for half of the guard time of the set. The node may
// have lost its data since, and have been caught up again.
func TestAnswersAboutRecordsCountForTheGuardTimeOfTheSet(t *testing.T) {
	t.Parallel()
	p := newProcess(3)
	p.Regroup(p.now, protocol.Group{Nodes: 3, Sets: protocol.Majority(3),
		Window: protocol.WindowOf(10 * time.Second)})
	q := &lease.RegisterOp{Op: protocol.OpRead}
	p.StartRegisterOp(p.now, q, "", aTimeout, aTTL)
	assert.Less(t, q.Fresh, 5*time.Second)
	assert.Greater(t, q.Fresh, 4*time.Second)
}
