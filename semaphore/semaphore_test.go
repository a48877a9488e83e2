package semaphore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/semaphore"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

// processes returns k participants of one semaphore of n permits, each with a
// Quorum of its own.
func processes(t *testing.T, k int, n int64, opts ...quorate.Option) []*semaphore.Weighted {
	t.Helper()
	c := redistest.Start(t, 3)
	t.Cleanup(func() { e2e.Clean(t, c) })
	var all []*semaphore.Weighted
	for range k {
		all = append(all, semaphore.NewWeighted(e2e.Open(t, c, opts...), "s", n))
	}
	return all
}

// bubbled is processes on nodes in the test's bubble.
func bubbled(t *testing.T, k int, n int64,
	opts ...quorate.Option) (c *quoratetest.Cluster, all []*semaphore.Weighted) {
	t.Helper()
	c = quoratetest.New(t, 3)
	t.Cleanup(func() { assert.Empty(t, c.Holders("s"), "when all are closed") })
	for range k {
		all = append(all, semaphore.NewWeighted(c.Quorum(opts...), "s", n))
	}
	return c, all
}

// A node lists 256 claims at most. More than that ask at one moment, and there
// is room for all.
func TestMoreClaimsThanANodeLists(t *testing.T) {
	const claims = 400
	ctx := patient(t)
	ss := processes(t, 4, claims+20)
	var all sync.WaitGroup
	for i := range claims {
		all.Go(func() { assert.NoError(t, ss[i%len(ss)].Acquire(ctx, 1)) })
	}
	all.Wait()
	require.False(t, t.Failed())
	for i := range claims {
		ss[i%len(ss)].Release(1)
	}
}

func TestWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := bubbled(t, 2, 5)
		ctx := t.Context()
		require.NoError(t, s[0].Acquire(ctx, 2))
		require.NoError(t, s[1].Acquire(ctx, 3))
		require.False(t, s[0].TryAcquire(1))
		s[1].Release(1) // part of a claim: it only gets lighter
		synctest.Wait()
		require.True(t, s[0].TryAcquire(1))
		require.False(t, s[0].TryAcquire(1))
		s[0].Release(3) // two claims at once
		s[1].Release(2)
		synctest.Wait()
		require.True(t, s[1].TryAcquire(5))
		s[1].Release(5)
	})
}

func TestALargeRequestIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := bubbled(t, 3, 3)
		ctx := t.Context()
		require.NoError(t, s[0].Acquire(ctx, 1))
		large := make(chan error, 1)
		go func() { large <- s[1].Acquire(ctx, 3) }()
		synctest.Wait()
		require.False(t, s[2].TryAcquire(1), "a small request waits behind the large one though it would fit")
		s[0].Release(1)
		require.NoError(t, <-large)
		s[1].Release(3)
	})
}

func TestBadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quoratetest.New(t, 3).Quorum()
		ctx := t.Context()
		s := semaphore.NewWeighted(q, "s", 2)
		require.ErrorIs(t, s.Acquire(ctx, 3), quorate.ErrInvalid, "at once, not at the context's end")
		require.ErrorContains(t, s.Acquire(ctx, 3), "3 permits were requested, but there are only 2")
		require.ErrorIs(t, s.Acquire(ctx, -1), quorate.ErrInvalid)
		require.NoError(t, s.Acquire(ctx, 0))
		require.False(t, s.TryAcquire(3))
		require.PanicsWithValue(t, "semaphore: released more than held", func() { s.Release(1) })
		require.NoError(t, s.Acquire(ctx, 1))
		require.PanicsWithValue(t, "semaphore: released more than held", func() { s.Release(2) })
		require.Panics(t, func() { s.Release(-1) })

		other := semaphore.NewWeighted(q, "s", 7)
		err := other.Acquire(ctx, 1)
		require.ErrorContains(t, err, "in use as a semaphore of 2 permits, not as a semaphore of 7 permits")
		require.ErrorIs(t, err, quorate.ErrInvalid)
		s.Release(1)

		require.ErrorIs(t, semaphore.NewWeighted(q, "s", 0).Acquire(ctx, 0), quorate.ErrInvalid)
		require.ErrorIs(t, semaphore.NewWeighted(q, "", 1).Acquire(ctx, 1), quorate.ErrInvalid)
		require.Panics(t, func() { _ = new(semaphore.Weighted).TryAcquire(1) })
		require.Panics(t, func() { semaphore.NewWeighted(q, "s", 1, quorate.WithTTL(-1)) })

		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, s.Acquire(ended, 1), context.Canceled)
	})
}

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := bubbled(t, 2, 1)
		ctx := t.Context()
		l, err := s[0].AcquireLease(ctx, 1)
		require.NoError(t, err)
		require.NoError(t, l.Context().Err())
		require.NoError(t, l.Release())
		require.ErrorIs(t, context.Cause(l.Context()), quorate.ErrReleased)
		require.ErrorIs(t, l.Release(), quorate.ErrNotHeld)
		next, err := s[1].AcquireLease(ctx, 1)
		require.NoError(t, err)
		require.Greater(t, next.Token(), l.Token())
		require.NoError(t, next.Release())
	})
}

// lossCounter is an observer that counts losses.
type lossCounter struct{ atomic.Int64 }

func (c *lossCounter) Observe(e quorate.Event) {
	if e.Kind == quorate.EventLost {
		c.Add(1)
	}
}

func TestLostPermitsAreReleasedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		var lost lossCounter
		q := c.Quorum(quorate.WithObserver(&lost))
		s := semaphore.NewWeighted(q, "s", 2)
		l, err := s.AcquireLease(t.Context(), 1)
		require.NoError(t, err)
		require.NoError(t, s.Acquire(t.Context(), 1))
		c.Partition(q, 0, 1)
		<-l.Context().Done()
		synctest.Wait()
		require.EqualValues(t, 2, lost.Load())
		require.ErrorIs(t, context.Cause(l.Context()), quorate.ErrLost)
		require.ErrorIs(t, l.Release(), quorate.ErrLost)
		c.Partition(q)
		require.NoError(t, s.Acquire(patient(t), 2), "what was lost is free again")
		s.Release(1) // the goroutine whose permit was lost
		require.False(t, s.TryAcquire(1), "its release gave nothing back")
		s.Release(2)
		require.Panics(t, func() { s.Release(1) })
	})
}

// TestStress counts what is in use from outside.
func TestStress(t *testing.T) {
	t.Parallel()
	const permits = 5
	var used, most atomic.Int64
	var wg sync.WaitGroup
	for _, s := range processes(t, 4, permits) {
		for g := range 5 {
			wg.Go(func() {
				for i := range 12 {
					n := int64(1 + (g+i)%3)
					if err := s.Acquire(t.Context(), n); err != nil {
						t.Error(err)
						return
					}
					u := used.Add(n)
					if u > permits {
						t.Errorf("%d of %d permits in use", u, permits)
					}
					for m := most.Load(); u > m && !most.CompareAndSwap(m, u); m = most.Load() {
					}
					time.Sleep(200 * time.Microsecond)
					used.Add(-n)
					s.Release(n)
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, int64(permits), most.Load(), "all are used")
}
