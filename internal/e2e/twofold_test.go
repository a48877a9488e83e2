package e2e_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A list with two addresses of one server is recorded by no node, and no lock
// is had with it. Where the nodes have recorded their set, the other address
// has no vote.
func TestOneServerUnderTwoAddresses(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	_, port, err := net.SplitHostPort(c.Node(0).Addr())
	require.NoError(t, err)
	alias := "localhost:" + port
	twice := []string{c.Node(0).URL(), "redis://" + alias, c.Node(2).URL()}
	timing := e2e.Timing(4 * time.Second)
	q := e2e.OpenAt(t, twice, timing)
	err = q.Bootstrap(deadline(t))
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "is the same server as")
	assert.ErrorContains(t, err, alias)
	for _, lock := range []func(context.Context) error{mutex.New(q, "m").TryLockContext,
		mutex.New(q, "m").LockContext} {
		err = lock(deadline(t))
		require.ErrorIs(t, err, quorate.ErrInvalid)
		assert.ErrorContains(t, err, "is the same server as")
	}

	recorded(t, e2e.OpenAt(t, c.URLs(), timing))
	holder := mutex.New(e2e.OpenAt(t, []string{"redis://127.0.0.1:1", c.Node(1).URL(), c.Node(2).URL()}, timing),
		"m")
	require.NoError(t, holder.LockContext(deadline(t)))
	m := mutex.New(e2e.OpenAt(t, twice, timing), "m")
	for range 10 {
		require.Error(t, m.TryLockContext(t.Context()), "one server has voted twice")
	}
	holder.Unlock()
	require.NoError(t, m.LockContext(deadline(t)), "the client counts on the recorded set")
	m.Unlock()
}
