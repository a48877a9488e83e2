package rwmutex_test

import (
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
)

// The holder of a lock that readers share is the first of them.
func TestHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quoratetest.New(t, 3).Quorum()
		a, b, third := rwmutex.New(q, "rw"), rwmutex.New(q, "rw"), rwmutex.New(q, "rw")
		ctx := t.Context()
		_, err := a.Holder(ctx)
		require.ErrorIs(t, err, quorate.ErrNotHeld)
		require.ErrorContains(t, err, `holder "rw"`)

		require.NoError(t, a.RLockContext(ctx))
		first := a.RLease().Token()
		require.NoError(t, b.RLockContext(ctx))
		synctest.Wait() // a node that a lock did not need hears of it later
		h, err := b.Holder(ctx)
		require.NoError(t, err)
		assert.Equal(t, 2, h.Holders)
		assert.Equal(t, first, h.Token)
		assert.Equal(t, os.Getpid(), h.PID)
		assert.Zero(t, h.Waiters)
		writer := later(t, third.LockContext)
		synctest.Wait()
		h, err = b.Holder(ctx)
		require.NoError(t, err)
		assert.Equal(t, []int{2, 1}, []int{h.Holders, h.Waiters})

		second := b.RLease().Token()
		require.NoError(t, a.RUnlockContext(ctx))
		synctest.Wait()
		h, err = b.Holder(ctx)
		require.NoError(t, err)
		assert.Equal(t, []int{1, 1}, []int{h.Holders, h.Waiters})
		assert.Equal(t, second, h.Token)
		b.RUnlock()
		require.NoError(t, <-writer)
		h, err = b.Holder(ctx)
		require.NoError(t, err)
		assert.Equal(t, third.Lease().Token(), h.Token)
		assert.Equal(t, 1, h.Holders)
		third.Unlock()
	})
}
