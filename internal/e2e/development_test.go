package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// The development mode has a guard time of 2 s, and says so. It is for one
// node. Production settings do not fit what it has recorded, and what
// production has recorded is not changed by it.
func TestForDevelopment(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	one := c.URLs()[:1]
	var log e2e.Log
	q, err := quorate.Connect(deadline(t), one, quorate.ForDevelopment(), log.Option())
	require.NoError(t, err)
	defer q.Close()
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	r, err := q.Check(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2000, int(r.Set.Guard.Milliseconds()))
	assert.Len(t, log.Lines("development mode"), 1)
	assert.Empty(t, log.Lines("production settings"))
	require.NoError(t, c.Node(0).Restart())
	require.NoError(t, m.LockContext(deadline(t)), "after a restart without data")
	m.Unlock()

	_, err = quorate.Connect(deadline(t), one, quorate.WithLogger(nil))
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "use ForDevelopment() in this client")
	assert.ErrorContains(t, err, "quorate members set --guard 20s, then quorate members set --skew 2s --yes")

	_, err = quorate.Connect(deadline(t), c.URLs(), quorate.ForDevelopment(), quorate.WithLogger(nil))
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "is for one node, but 3 are listed")

	other := c.URLs()[1:2]
	require.NoError(t, e2e.OpenAt(t, other).Bootstrap(deadline(t)))
	var said e2e.Log
	late, err := quorate.Connect(deadline(t), other, quorate.ForDevelopment(), said.Option())
	require.NoError(t, err)
	defer late.Close()
	m = mutex.New(late, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	assert.Len(t, said.Lines("first used with production settings"), 1)
	r, err = late.Check(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 20.0, r.Set.Guard.Seconds())
}
