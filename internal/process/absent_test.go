package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// left is a read of ABD, whose client has the list ABC: number 2 is C, which
// has left and is asked nothing. A says that the claim of the leader runs, D
// does not have it, and B does not answer.
func left(t *testing.T, q *lease.RegisterOp) (now protocol.Time) {
	t.Helper()
	now = protocol.Time(time.Hour)
	q.Op, q.Nodes, q.Sets, q.Absent = protocol.OpRead, 4, protocol.Quorums{Present: 0b1011}, 0b0100
	q.NodeTimeout, q.MaxPause, q.Fresh = 50*time.Millisecond, time.Second, 20*time.Second
	q.Start(now)
	asked := append([]protocol.Request(nil), q.Out...)
	require.Len(t, asked, 3)
	says := func(left time.Duration) protocol.Answer {
		return protocol.Answer{Status: protocol.OK,
			Record: &protocol.Entry{Stored: protocol.Stored{Version: protocol.Version{Ticket: 64}}, CaughtUp: true,
				Left: left}}
	}
	q.Answer(now.Add(1), asked[0], says(time.Second))
	q.Answer(now.Add(1), asked[2], says(0))
	return now.Add(1)
}

// A reader that wants to know whether the leader is alive waits for a slow
// node, and not for one that has left.
func TestReadDoesNotWaitForANodeThatHasLeft(t *testing.T) {
	t.Parallel()
	q := &lease.RegisterOp{Alive: true}
	now := left(t, q)
	assert.Equal(t, lease.Asking, q.Outcome(), "B is only slow, as far as is known")
	for now = now.Add(60 * time.Millisecond); q.Outcome() == lease.Asking &&
		now < protocol.Time(2*time.Hour); now = now.Add(time.Second) {
		q.Tick(now)
	}
	assert.Equal(t, lease.Settled, q.Outcome(), "it waits for C without end")
}

// A number of permits is brought to each node that answers, also where a node
// has left.
func TestNumberIsSpreadThoughANodeHasLeft(t *testing.T) {
	t.Parallel()
	q := &lease.RegisterOp{All: true}
	now := left(t, q)
	q.Tick(now.Add(60 * time.Millisecond)) // B has failed to answer
	assert.Equal(t, lease.Settled, q.Outcome(), "it waits for C without end")
}

// So it is where the node has left while the operation went on, and lacks what
// the others have.
func TestNumberIsSpreadThoughANodeLeaves(t *testing.T) {
	t.Parallel()
	q := &lease.RegisterOp{Op: protocol.OpRead, All: true, Nodes: 3, NodeTimeout: 50 * time.Millisecond,
		MaxPause: time.Second, Fresh: 20 * time.Second}
	now := protocol.Time(time.Hour)
	q.Start(now)
	asked := append([]protocol.Request(nil), q.Out...)
	q.Out = nil
	says := func(n int) protocol.Answer {
		return protocol.Answer{Status: protocol.OK,
			Record: &protocol.Entry{Stored: protocol.Stored{Version: protocol.Version{Ticket: protocol.Ticket(n)}},
				CaughtUp: true}}
	}
	q.Answer(now.Add(1), asked[2], says(0))
	q.Regroup(now.Add(1), protocol.Group{Nodes: 3, Sets: protocol.Quorums{Present: 0b011}, Absent: 0b100})
	q.Answer(now.Add(1), asked[0], says(64))
	q.Answer(now.Add(1), asked[1], says(64))
	assert.Equal(t, lease.Settled, q.Outcome(), "it waits for C to have what A and B have, and does not ask C")
}

// A wait for a quorum knows only the nodes of the set: two far nodes that have
// left it do not count.
func TestWaitForAQuorumAfterFarNodesHaveLeft(t *testing.T) {
	t.Parallel()
	p := newProcess(5)
	for i := range 2 {
		p.Connect(p.now, i, aTimeout)
	}
	p.Regroup(p.now, protocol.Group{Nodes: 5, Sets: protocol.Quorums{Present: 0b11100}, Absent: 0b00011})
	p.Connect(p.now, 4, aTimeout) // it is not needed
	read := &lease.RegisterOp{Op: protocol.OpRead}
	p.StartRegisterOp(p.now, read, "", aTimeout, aTTL)
	assert.Equal(t, aTimeout, read.NodeTimeout)
}
