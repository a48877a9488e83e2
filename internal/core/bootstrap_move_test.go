package core

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// While discovery moves a member it has no connection. Such a member has not
// answered, and Bootstrap tries again until it has. Before, it counted as one
// that had.
func TestBootstrapWaitsForAMemberThatMoves(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
	require.NoError(t, q.BootstrapSet(within(t)))
	<-q.Drop(2)
	b := newBootstrap(q, recordsAny)
	for _, err := range []error{
		b.record(within(t)),
		b.ready(within(t)),
	} {
		f, is := errors.AsType[*Failure](err)
		require.True(t, is, "%v", err)
		assert.Equal(t, []NodeFailure{{c.Node(2).Addr(), errMoving}}, f.Nodes)
		assert.True(t, beingJudged(err), "it is tried again")
	}
	require.NoError(t, q.Connect(2, c.Node(2).Client()))
	require.Eventually(t, func() bool { return q.nodes.at(2).err() == nil }, time.Minute, time.Millisecond)
	require.NoError(t, q.BootstrapSet(within(t)))
}

// The error of an operation on a record counts answers. A node that was not
// asked has given none.
func TestFailureCountsAnswers(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := brandNew(t, c.Node(0), c.Node(1), c.Node(2))
	i := &registerCall{q: q, errs: make([]error, 3), asked: 0b011}
	i.in.Nodes, i.errs[0] = 3, errNoAnswer
	f := i.failure(ErrNoQuorum)
	assert.Equal(t, 1, f.Votes)
	assert.Len(t, f.Nodes, 1)
}
