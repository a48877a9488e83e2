package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/semaphore"
)

// available is what a semaphore says at the moment, when all messages have
// arrived.
func available(t *testing.T, s *semaphore.Weighted) int64 {
	t.Helper()
	synctest.Wait()
	n, err := s.Available(patient(t))
	require.NoError(t, err)
	return n
}

func TestAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := bubbled(t, 3, 5)
		assert.EqualValues(t, 5, available(t, s[0]), "nobody has any")
		require.NoError(t, s[0].Acquire(patient(t), 2))
		require.NoError(t, s[1].Acquire(patient(t), 1))
		assert.EqualValues(t, 2, available(t, s[2]))
		s[0].Release(1)
		assert.EqualValues(t, 3, available(t, s[2]), "part of a claim is free again")

		// It is what TryAcquire gets, and no more.
		require.False(t, s[2].TryAcquire(4))
		require.True(t, s[2].TryAcquire(3))
		assert.Zero(t, available(t, s[2]))
		s[2].Release(3)

		// No request overtakes the one that waits, though three permits are free.
		waiter := make(chan error, 1)
		go func() { waiter <- s[2].Acquire(patient(t), 5) }()
		assert.Zero(t, available(t, s[0]))
		require.False(t, s[0].TryAcquire(1))
		s[0].Release(1)
		s[1].Release(1)
		require.NoError(t, <-waiter)
		assert.Zero(t, available(t, s[0]))
		s[2].Release(5)

		// A Resize counts, whatever was declared, and more may be held than it leaves.
		require.NoError(t, s[0].Acquire(patient(t), 3))
		require.NoError(t, s[1].Resize(patient(t), 9))
		assert.EqualValues(t, 6, available(t, s[2]))
		require.NoError(t, s[1].Resize(patient(t), 2))
		assert.Zero(t, available(t, s[2]))
		s[0].Release(3)
		assert.EqualValues(t, 2, available(t, s[2]))

		c.Stop(2)
		require.NoError(t, s[0].Acquire(patient(t), 1))
		assert.EqualValues(t, 1, available(t, s[2]), "two nodes of three say it")
		s[0].Release(1)
	})
}

// Without a majority there is no number, and a name that is in use with another
// number of permits has none.
func TestAvailableFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		s := semaphore.NewWeighted(q, "s", 5)
		require.NoError(t, s.Acquire(patient(t), 1))
		synctest.Wait()
		_, err := semaphore.NewWeighted(q, "s", 7).Available(patient(t))
		require.ErrorIs(t, err, quorate.ErrInvalid)
		assert.ErrorContains(t, err, "in use as a semaphore of 5 permits, not as a semaphore of 7 permits")
		s.Release(1)
		synctest.Wait()
		_, err = semaphore.NewWeighted(q, "", 7).Available(patient(t))
		require.ErrorIs(t, err, quorate.ErrInvalid)
		_, err = semaphore.NewWeighted(q, "s", 0).Available(patient(t))
		require.ErrorIs(t, err, quorate.ErrInvalid)
		require.Panics(t, func() { _, _ = new(semaphore.Weighted).Available(patient(t)) })

		c.Forget(1)
		c.Stop(2)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := s.Available(ctx)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		err = <-failed
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.NoError(t, q.Close())
		_, err = s.Available(patient(t))
		require.ErrorIs(t, err, quorate.ErrClosed)
	})
}

// On real servers: more claims than a node shows, also while one of three nodes
// hangs.
func TestAvailableOfManyClaims(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	t.Cleanup(func() { e2e.Clean(t, c) })
	s := semaphore.NewWeighted(e2e.Open(t, c), "s", 200)
	says := func(want int64) {
		t.Helper()
		var n int64
		var err error
		require.True(t, e2e.Eventually(func() bool {
			n, err = s.Available(patient(t))
			return err == nil && n == want
		}), "want %d, got %d, %v", want, n, err)
	}
	says(200)
	require.NoError(t, s.Acquire(patient(t), 30))
	for range 119 {
		require.NoError(t, s.Acquire(patient(t), 1))
	}
	says(51)
	require.NoError(t, c.Node(1).Stop())
	says(51)
	require.NoError(t, c.Node(1).Cont())
	s.Release(30)
	s.Release(119)
	says(200)
}
