package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// guardIsKept reports whether a node that has just lost its data stays within its guard time when an operator records the set,
// which is in use.
func guardIsKept(t *testing.T) bool {
	c := redistest.Start(t, 3)
	operator, _ := gives(t, c, 3)
	require.NoError(t, operator.BootstrapSet(within(t)))
	require.NoError(t, c.Node(2).Kill())
	require.NoError(t, c.Node(2).Restart())
	left := func() (left time.Duration, marked bool) {
		res := operator.nodes.at(2).lookAt(t.Context(), operator.members.markerKey(), true)
		return res.Wait, res.Err == nil && res.Incarnation != 0
	}
	require.Eventually(t, func() bool { wait, marked := left(); return marked && wait > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, operator.BootstrapSet(within(t)))
	wait, _ := left()
	return wait > 0
}

// A node that lost its data does not vote because an operator records the set once more. Before, it voted at once, beside the
// holders that it had forgotten.
func TestBootstrapKeepsAGuardTimeThatRuns(t *testing.T) {
	t.Parallel()
	assert.True(t, guardIsKept(t))
}

// A call that could not declare one node the first time declares it when it tries again: that none of them voted before it began
// is what counts. Before, the node stayed within its guard time, and with another node down there was no quorum.
func TestBootstrapTriesAgain(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := opened(t, exchangeSettings(), c.Node(0), c.Node(1), c.Node(2))
	b := &bootstrap{q: q, set: true}
	require.Eventually(t, func() bool { return b.record(within(t)) == nil }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { // the nodes are connected to again
		votes, incs, err := b.end(within(t), func(int) string { return script.EndNone })
		assert.False(t, votes)
		b.idle = incs
		return err == nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.Node(1).Stop())
	require.ErrorIs(t, b.ready(within(t)), ErrNoQuorum)
	require.NoError(t, c.Node(1).Cont())
	require.Eventually(t, func() bool { return b.ready(within(t)) == nil }, time.Minute, time.Millisecond)
	for i := range c.Len() {
		res := q.nodes.at(i).lookAt(within(t), q.members.markerKey(), true)
		require.NoError(t, res.Err)
		assert.Zero(t, res.Wait, "node %d votes", i)
	}
}
