package rwmutex_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/rwmutex"
)

// The holder of a lock that readers share is the first of them.
func TestHolder(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	t.Cleanup(func() { e2e.Clean(t, c) })
	q := e2e.Open(t, c)
	a, b, third := rwmutex.New(q, "rw"), rwmutex.New(q, "rw"), rwmutex.New(q, "rw")
	ctx := t.Context()
	_, err := a.Holder(ctx)
	require.ErrorIs(t, err, quorate.ErrNotHeld)
	require.ErrorContains(t, err, `holder "rw"`)

	require.NoError(t, a.RLockContext(ctx))
	first := a.RLease().Token()
	require.NoError(t, b.RLockContext(ctx))
	var h quorate.Holder
	require.True(t, e2e.Eventually(func() bool { // a node that a lock did not need hears of it later
		h, err = b.Holder(ctx)
		return err == nil && h.Holders == 2
	}), "%+v, %v", h, err)
	assert.Equal(t, first, h.Token)
	assert.Equal(t, os.Getpid(), h.PID)
	assert.Zero(t, h.Waiters)
	writer := later(t, third.LockContext)
	require.True(t, e2e.Eventually(func() bool {
		h, err = b.Holder(ctx)
		return err == nil && h.Holders == 2 && h.Waiters == 1
	}), "%+v, %v", h, err)

	second := b.RLease().Token()
	require.NoError(t, a.RUnlockContext(ctx))
	require.True(t, e2e.Eventually(func() bool {
		h, err = b.Holder(ctx)
		return err == nil && h.Holders == 1 && h.Token == second && h.Waiters == 1
	}), "%+v, %v", h, err)
	b.RUnlock()
	require.NoError(t, e2e.Receive(t, writer))
	h, err = b.Holder(ctx)
	require.NoError(t, err)
	assert.Equal(t, third.Lease().Token(), h.Token)
	assert.Equal(t, 1, h.Holders)
	third.Unlock()
}
