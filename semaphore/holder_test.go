package semaphore_test

import (
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
)

// The holder of a semaphore is the first of the claims that have permits.
func TestHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := bubbled(t, 2, 3)
		ctx := patient(t)
		_, err := s[0].Holder(ctx)
		require.ErrorIs(t, err, quorate.ErrNotHeld)

		// A node that has the second claim before the first has that in line.
		first, err := s[0].AcquireLease(ctx, 1)
		require.NoError(t, err)
		synctest.Wait()
		second, err := s[1].AcquireLease(ctx, 2)
		require.NoError(t, err)
		synctest.Wait()
		waits := make(chan error, 1)
		go func() { waits <- s[0].Acquire(ctx, 3) }()
		synctest.Wait()
		h, err := s[1].Holder(ctx)
		require.NoError(t, err)
		assert.Equal(t, []int{2, 1}, []int{h.Holders, h.Waiters})
		assert.Equal(t, first.Token(), h.Token)
		assert.Equal(t, os.Getpid(), h.PID)

		require.NoError(t, first.Release())
		synctest.Wait()
		h, err = s[0].Holder(ctx)
		require.NoError(t, err)
		assert.Equal(t, 1, h.Holders)
		assert.Equal(t, second.Token(), h.Token)
		require.NoError(t, second.Release())
		require.NoError(t, <-waits)
		s[0].Release(3)
	})
}
