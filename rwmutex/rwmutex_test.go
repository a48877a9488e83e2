package rwmutex_test

import (
	"context"
	"errors"
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
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
)

func TestMain(m *testing.M) { e2e.MainWithNodes(m) }

// two returns two participants of one name in the test's bubble, each with a
// Quorum of its own, as two processes have.
func two(t *testing.T, opts ...quorate.Option) (a, b *rwmutex.RWMutex) {
	t.Helper()
	c := quoratetest.New(t, 3)
	t.Cleanup(func() { assert.Empty(t, c.Holders("rw"), "when both are closed") })
	return rwmutex.New(c.Quorum(opts...), "rw"), rwmutex.New(c.Quorum(opts...), "rw")
}

// later calls lock in a goroutine and returns when that waits.
func later(t *testing.T, lock func(context.Context) error) <-chan error {
	t.Helper()
	ctx := e2e.NewQueued(t.Context())
	done := make(chan error, 1)
	go func() { done <- lock(ctx) }()
	select {
	case <-ctx.In():
	case err := <-done:
		require.FailNow(t, "did not wait", "%v", err)
	}
	return done
}

func TestReadersShareWritersExclude(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t)
		ctx := t.Context()
		a.RLock()
		require.NoError(t, b.TryRLockContext(ctx), "readers share")
		require.ErrorIs(t, b.TryLockContext(ctx), quorate.ErrHeld, "a writer is kept out")
		b.RUnlock()
		require.ErrorIs(t, b.TryLockContext(ctx), quorate.ErrHeld, "by one reader, too")
		require.NoError(t, a.RUnlockContext(ctx))
		require.NoError(t, b.TryLockContext(ctx))
		require.ErrorIs(t, a.TryRLockContext(ctx), quorate.ErrHeld)
		require.ErrorIs(t, a.TryLockContext(ctx), quorate.ErrHeld)
		require.NoError(t, b.UnlockContext(ctx))
	})
}

func TestWaitingWriterStopsNewReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t)
		ctx := t.Context()
		a.RLock()
		writer := later(t, b.LockContext)
		require.False(t, b.TryRLock())
		synctest.Wait()
		require.False(t, a.TryRLock(), "neither process lets new readers past the writer")
		reader := later(t, a.RLockContext)
		token := a.RLease().Token()
		a.RUnlock()
		require.NoError(t, <-writer)
		require.Greater(t, b.Lease().Token(), token)
		select {
		case <-reader:
			require.FailNow(t, "a reader beside the writer")
		case <-time.After(20 * time.Millisecond):
		}
		token = b.Lease().Token()
		require.NoError(t, b.UnlockContext(ctx))
		require.NoError(t, <-reader)
		require.Greater(t, a.RLease().Token(), token, "a reader of after the writer has a higher token")
		a.RUnlock()
	})
}

func TestReadersBehindAWriterComeInTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		writer := rwmutex.New(c.Quorum(), "rw")
		writer.Lock()
		var readers []*rwmutex.RWMutex
		var waits []<-chan error
		for range 4 {
			m := rwmutex.New(c.Quorum(), "rw")
			readers = append(readers, m)
			waits = append(waits, later(t, m.RLockContext))
		}
		writer.Unlock()
		for _, w := range waits {
			require.NoError(t, <-w) // none has left yet
		}
		for _, m := range readers {
			m.RUnlock()
		}
	})
}

func TestReadersOfOneValueShareAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t)
		a.RLock()
		lease := a.RLease()
		a.RLock()
		require.Equal(t, lease, a.RLease())
		a.RUnlock()
		require.NoError(t, lease.Context().Err())
		require.False(t, b.TryLock(), "one reader is left")
		require.NoError(t, a.RUnlockContext(t.Context()))
		require.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrReleased)
		require.NoError(t, b.TryLockContext(t.Context()))
		b.Unlock()
	})
}

func TestDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t)
		ctx := t.Context()
		a.Lock()
		reader := later(t, b.RLockContext)
		writer := rwmutexLater(t, a)
		require.NoError(t, a.Downgrade(ctx))
		require.NoError(t, <-reader, "readers elsewhere come in")
		require.NotNil(t, a.RLease())
		require.Nil(t, a.Lease())
		require.PanicsWithValue(t, "quorate: Unlock of unlocked RWMutex rw", a.Unlock)
		b.RUnlock()
		select {
		case <-writer:
			require.FailNow(t, "a writer beside the reader that was a writer")
		case <-time.After(20 * time.Millisecond):
		}
		a.RUnlock()
		require.NoError(t, <-writer)
		a.Unlock()
		require.ErrorIs(t, a.Downgrade(ctx), quorate.ErrNotHeld)
	})
}

// A writer that becomes a reader lets others in, also where its hold is not
// renewed, or not any more.
func TestDowngradeWithoutRenewal(t *testing.T) {
	long := []quorate.Option{quorate.WithTTL(10 * time.Minute), quorate.WithGuard(time.Hour),
		quorate.WithRetention(2 * time.Hour)}
	for what, opt := range map[string]quorate.Option{
		"WithoutRenewal": quorate.WithoutRenewal(), "WithMaxHold": quorate.WithMaxHold(time.Second),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := two(t, append(long, opt)...)
				a.Lock()
				time.Sleep(5 * time.Minute)
				ends := a.Lease().ValidUntil()
				began := time.Now()
				require.NoError(t, a.Downgrade(t.Context()))
				require.NoError(t, b.RLockContext(t.Context()))
				assert.Less(t, time.Since(began), time.Second)
				assert.Equal(t, ends, a.RLease().ValidUntil())
				b.RUnlock()
				a.RUnlock()
			})
		})
	}
}

// rwmutexLater queues a writer behind the holder of the same value.
func rwmutexLater(t *testing.T, m *rwmutex.RWMutex) <-chan error { return later(t, m.LockContext) }

func TestLingerIsGivenUpToAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, quorate.WithLinger(time.Hour))
		a.RLock()
		token := a.RLease().Token()
		a.RUnlock()
		a.RLock()
		require.Equal(t, token, a.RLease().Token(), "the claim was kept")
		a.RUnlock()
		start := time.Now()
		require.NoError(t, b.LockContext(t.Context()))
		require.Less(t, time.Since(start), 100*time.Millisecond, "by push, not by the lease's end")
		b.Unlock()
		require.NoError(t, a.LockContext(t.Context()))
		a.Unlock()
	})
}

func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := two(t)
		require.PanicsWithValue(t, "quorate: RUnlock of unlocked RWMutex rw", a.RUnlock)
		require.PanicsWithValue(t, "quorate: Unlock of unlocked RWMutex rw", a.Unlock)
		require.ErrorIs(t, a.RUnlockContext(t.Context()), quorate.ErrNotHeld)
		require.ErrorIs(t, a.UnlockContext(t.Context()), quorate.ErrNotHeld)
		require.ErrorIs(t, a.Extend(t.Context()), quorate.ErrNotHeld)
		a.RLock()
		require.PanicsWithValue(t, "quorate: Unlock of unlocked RWMutex rw", a.Unlock)
		require.NoError(t, a.RExtend(t.Context()))
		a.RUnlock()
		a.Lock()
		require.PanicsWithValue(t, "quorate: RUnlock of unlocked RWMutex rw", a.RUnlock)
		require.NoError(t, a.Extend(t.Context()))
		a.Unlock()
		require.Panics(t, func() { new(rwmutex.RWMutex).RLock() })
		reading := a.RLocker()
		reading.Lock()
		require.NotNil(t, a.RLease())
		reading.Unlock()
	})
}

func TestOneNameIsOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quoratetest.New(t, 3).Quorum()
		m := mutex.New(q, "x")
		m.Lock()
		err := rwmutex.New(q, "x").LockContext(t.Context())
		require.ErrorIs(t, err, quorate.ErrInvalid)
		require.NotErrorIs(t, err, quorate.ErrNoQuorum)
		require.ErrorContains(t, err, "in use as a mutex, once or leader (capacity 1), not as an rwmutex")
		m.Unlock()
	})
}

func TestDoAndRDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t)
		ctx := t.Context()
		boom := errors.New("boom")
		require.ErrorIs(t, a.Do(ctx, func(context.Context) error {
			require.False(t, b.TryRLock())
			return boom
		}), boom)
		require.NoError(t, a.RDo(ctx, func(context.Context) error {
			require.True(t, b.TryRLock())
			b.RUnlock()
			return nil
		}))
	})
}

// TestStress: readers see both halves of what writers write, over four
// participants, and do run together.
func TestStress(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	t.Cleanup(func() { e2e.Clean(t, c) })
	var left, right int // not atomic: the race detector is the judge as well
	var reading, together atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		m := rwmutex.New(e2e.Open(t, c), "rw")
		for g := range 4 {
			wg.Go(func() {
				for i := range 30 {
					if g == 0 && i%3 == 0 {
						m.Lock()
						left++
						time.Sleep(50 * time.Microsecond)
						right++
						m.Unlock()
						continue
					}
					m.RLock()
					if n := reading.Add(1); n > together.Load() {
						together.Store(n)
					}
					time.Sleep(100 * time.Microsecond)
					if left != right {
						t.Errorf("a torn write: %d, %d", left, right)
					}
					reading.Add(-1)
					m.RUnlock()
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, 40, left)
	require.Greater(t, together.Load(), int32(1), "readers run together")
	t.Log("readers at once:", together.Load())
}
