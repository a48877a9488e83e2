package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	require.Eventually(t, func() bool { wait, marked := left(); return marked && wait > 0 }, 20*time.Second, time.Millisecond)
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
