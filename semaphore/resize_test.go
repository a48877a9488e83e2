package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/semaphore"
)

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e2e.Patience)
	t.Cleanup(cancel)
	return ctx
}

func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := bubbled(t, 3, 2)
		for _, n := range []int64{0, -1, 1 << 49} {
			require.ErrorIs(t, s[0].Resize(patient(t), n), quorate.ErrInvalid)
		}
		require.NoError(t, s[0].Acquire(patient(t), 2))
		// More permits admit the waiters at once: with the default ttl the next
		// renewal comes only after seconds.
		waiter := make(chan error, 1)
		go func() { waiter <- s[1].Acquire(patient(t), 2) }()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, s[2].Resize(patient(t), 5))
		require.NoError(t, <-waiter)
		assert.Less(t, time.Since(began), 100*time.Millisecond)
		n, err := s[1].Size(patient(t))
		require.NoError(t, err)
		assert.Equal(t, int64(5), n)
		require.True(t, s[2].TryAcquire(1))
		require.False(t, s[2].TryAcquire(1))
		s[2].Release(1)

		// Fewer take effect as permits come back. No holder loses any.
		l, err := s[2].AcquireLease(patient(t), 1)
		require.NoError(t, err)
		require.NoError(t, s[0].Resize(patient(t), 1))
		require.ErrorIs(t, s[1].Acquire(patient(t), 2), quorate.ErrInvalid)
		require.False(t, s[0].TryAcquire(1))
		s[0].Release(2)
		s[1].Release(2)
		require.False(t, s[1].TryAcquire(1), "the one permit that there is left is held")
		require.NoError(t, l.Context().Err())
		require.NoError(t, l.Release())
		synctest.Wait()
		require.True(t, s[1].TryAcquire(1))
		require.False(t, s[0].TryAcquire(1))
		s[1].Release(1)

		// More than were declared.
		require.NoError(t, s[0].Resize(patient(t), 4))
		require.NoError(t, s[0].Acquire(patient(t), 4))
		s[0].Release(4)
		require.ErrorIs(t, s[0].Acquire(patient(t), 5), quorate.ErrInvalid)
	})
}

// A waiter for more permits than a Resize leaves gets an error, instead of
// waiting forever.
func TestResizeBelowWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := bubbled(t, 2, 3)
		require.NoError(t, s[0].Acquire(patient(t), 1))
		waiter := make(chan error, 1)
		go func() { waiter <- s[1].Acquire(patient(t), 3) }()
		synctest.Wait()
		require.NoError(t, s[0].Resize(patient(t), 2))
		require.ErrorIs(t, <-waiter, quorate.ErrInvalid)
		require.NoError(t, s[1].Acquire(patient(t), 1))
		s[0].Release(1)
		s[1].Release(1)
	})
}

// The number outlives the semaphore's use, and binds clients that declare
// another.
func TestResizeStays(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	a := semaphore.NewWeighted(e2e.Open(t, c), "s", 5)
	require.NoError(t, a.Resize(patient(t), 2))
	for i := range 3 {
		require.True(t, e2e.Eventually(func() bool {
			left, err := c.Node(i).Client().TTL(t.Context(), "quorate:{s}:n:r").Result()
			return err == nil && left == -1
		}), "kept forever")
		require.NoError(t, c.Node(i).Client().Del(t.Context(), "quorate:{s}").Err()) // as after the retention
	}
	b := semaphore.NewWeighted(e2e.Open(t, c), "s", 9)
	require.NoError(t, b.Acquire(patient(t), 2))
	require.False(t, a.TryAcquire(1))
	b.Release(2)
}

// A node that missed the Resize, or has lost it, gets it from the next client
// that asks. Until then neither node votes by the old number.
func TestResizeMissedAndForgotten(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(400 * time.Millisecond)
	a := semaphore.NewWeighted(e2e.Open(t, c, timing), "s", 3)
	require.NoError(t, c.Node(2).Kill())
	require.NoError(t, a.Resize(patient(t), 1))
	require.NoError(t, c.Node(2).Restart())
	record := func(node int) func() bool {
		return func() bool {
			use := a.Acquire(patient(t), 1)
			a.Release(1)
			there, err := c.Node(node).Client().Exists(t.Context(), "quorate:{s}:n:r").Result()
			return use == nil && err == nil && there == 1
		}
	}
	require.True(t, e2e.Eventually(record(2)), "missed")
	require.NoError(t, c.Node(0).Client().FlushAll(t.Context()).Err())
	require.True(t, e2e.Eventually(record(0)), "forgotten")
	require.NoError(t, c.Node(1).Kill())
	require.NoError(t, a.Acquire(patient(t), 1))
	require.False(t, a.TryAcquire(1))
	a.Release(1)
}

// More permits than were declared are there also while a node is away.
func TestResizeUpWithANodeDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, all := bubbled(t, 1, 1)
		s := all[0]
		require.NoError(t, s.Resize(patient(t), 10))
		require.NoError(t, s.Acquire(patient(t), 5))
		c.Stop(2)
		require.NoError(t, s.Acquire(patient(t), 5))
		require.False(t, s.TryAcquire(1))
		s.Release(10)
		require.NoError(t, s.Acquire(patient(t), 10))
		s.Release(10)
	})
}
