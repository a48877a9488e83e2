package semaphore_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
)

// The holder of a semaphore is the first of the claims that have permits.
func TestHolder(t *testing.T) {
	t.Parallel()
	s := processes(t, 2, 3)
	ctx := patient(t)
	_, err := s[0].Holder(ctx)
	require.ErrorIs(t, err, quorate.ErrNotHeld)

	first, err := s[0].AcquireLease(ctx, 1)
	require.NoError(t, err)
	second, err := s[1].AcquireLease(ctx, 2)
	require.NoError(t, err)
	waits := make(chan error, 1)
	go func() { waits <- s[0].Acquire(ctx, 3) }()
	var h quorate.Holder
	require.True(t, e2e.Eventually(func() bool {
		h, err = s[1].Holder(ctx)
		return err == nil && h.Holders == 2 && h.Waiters == 1
	}), "%+v, %v", h, err)
	assert.Equal(t, first.Token(), h.Token)
	assert.Equal(t, os.Getpid(), h.PID)

	require.NoError(t, first.Release())
	require.True(t, e2e.Eventually(func() bool {
		h, err = s[0].Holder(ctx)
		return err == nil && h.Holders == 1 && h.Token == second.Token()
	}), "%+v, %v", h, err)
	require.NoError(t, second.Release())
	require.NoError(t, e2e.Receive(t, waits))
	s[0].Release(3)
}
