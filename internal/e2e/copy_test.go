package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A server with a copy of a member's data is not added to the set.
func TestACopyIsNotAdded(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4, redistest.WithAOF("always"))
	q := e2e.OpenAt(t, c.URLs()[:3], e2e.Timing(time.Second))
	recorded(t, q)
	require.NoError(t, c.Node(2).Kill())
	copies(t, c.Node(2), c.Node(3))
	require.NoError(t, c.Node(2).Restart())
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == 3
	}))
	err := q.AddNodes(deadline(t), c.Node(3).URL())
	require.ErrorIs(t, err, quorate.ErrInvalid)
	require.ErrorContains(t, err, "it has a copy of that node's data")
	r, err := q.Check(deadline(t))
	require.NoError(t, err)
	assert.Equal(t, c.Addrs()[:3], r.Set.Members)
	assert.Equal(t, "stable", r.Set.Stage)
}
