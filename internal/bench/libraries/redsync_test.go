package libraries

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A fleet that migrates from redsync has both on one name for a while. These
// tests run redsync's own code against ours on the same servers.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// both opens a Quorum and a redsync client on the same nodes.
func both(t *testing.T, opts ...quorate.Option) (*quorate.Quorum, *redsync.Redsync) {
	t.Helper()
	c := redistest.Start(t, 3)
	q, err := quorate.Connect(t.Context(), c.URLs(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	require.NoError(t, q.Bootstrap(t.Context()))
	theirs, err := openRedsync(false)(t.Context(), servers.Direct(c))
	require.NoError(t, err)
	t.Cleanup(theirs.Close)
	return q, theirs.(*redsyncClient).rs
}

// takeover runs f alongside a LockContext that waits, and returns how long
// after f's end the lock was had.
func takeover(t *testing.T, m *mutex.Mutex, f func()) time.Duration {
	t.Helper()
	got := make(chan time.Time, 1)
	errs := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		err := m.LockContext(ctx)
		got <- time.Now()
		errs <- err
	}()
	f()
	end := time.Now()
	at := <-got
	require.NoError(t, <-errs)
	return at.Sub(end)
}

func TestRedsyncExcludesUs(t *testing.T) {
	q, rs := both(t)
	theirs, ours := rs.NewMutex("name"), mutex.New(q, "name")
	require.NoError(t, theirs.Lock())
	require.ErrorIs(t, ours.TryLockContext(t.Context()), quorate.ErrHeld)
	h, err := ours.Holder(t.Context())
	require.NoError(t, err)
	require.True(t, h.Foreign)

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err = ours.LockContext(ctx)
	require.ErrorIs(t, err, quorate.ErrHeld)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	waited := takeover(t, ours, func() {
		time.Sleep(time.Second)
		ok, err := theirs.Unlock()
		require.True(t, ok, err)
	})
	// Redsync publishes nothing, so this one wait is a matter of asking.
	require.Less(t, waited, 500*time.Millisecond)
	require.NoError(t, ours.UnlockContext(t.Context()))
	require.NoError(t, theirs.TryLock())
}

func TestRedsyncExpires(t *testing.T) {
	q, rs := both(t)
	theirs, ours := rs.NewMutex("name", redsync.WithExpiry(time.Second)), mutex.New(q, "name")
	require.NoError(t, theirs.Lock())
	expiry := time.Now().Add(time.Second)
	require.NoError(t, ours.LockContext(t.Context()))
	require.WithinRange(t, time.Now(), expiry.Add(-50*time.Millisecond), expiry.Add(500*time.Millisecond))
	require.NoError(t, ours.UnlockContext(t.Context()))
}

func TestWeExcludeRedsync(t *testing.T) {
	ttl := 600 * time.Millisecond
	q, rs := both(t, quorate.WithTTL(ttl), quorate.WithNodeTimeout(ttl/4))
	ours, theirs := mutex.New(q, "name"), rs.NewMutex("name")
	require.NoError(t, ours.LockContext(t.Context()))
	lease := ours.Lease()
	// Three leases long: without renewal it could have had the name twice.
	for end := time.Now().Add(3 * ttl); time.Now().Before(end); time.Sleep(ttl / 40) {
		err := theirs.TryLock()
		require.NoError(t, lease.Context().Err())
		require.Error(t, err)
		_, taken := errors.AsType[*redsync.ErrTaken](err)
		require.True(t, taken, err)
	}
	require.NoError(t, ours.UnlockContext(t.Context()))
	require.NoError(t, theirs.TryLock())
	ok, err := theirs.Unlock()
	require.True(t, ok, err)
}

// TestBothContend has four of each increment a counter that nothing else
// protects: an overlap shows in its sum, and in the number of those inside.
func TestBothContend(t *testing.T) {
	q, rs := both(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var counter, sum, inside atomic.Int64
	var theirs, ours atomic.Int64
	var wg sync.WaitGroup
	work := func(done *atomic.Int64) error {
		if n := inside.Add(1); n != 1 {
			return fmt.Errorf("%d inside at once", n)
		}
		// Atomic for the race detector's sake only: the race detector cannot
		// see a lock that is held on other servers. The increment is not.
		n := counter.Load()
		time.Sleep(200 * time.Microsecond)
		counter.Store(n + 1)
		inside.Add(-1)
		sum.Add(1)
		done.Add(1)
		return nil
	}
	errs := make(chan error, 8)
	for range 4 {
		m := mutex.New(q, "name")
		wg.Go(func() {
			for {
				if err := m.LockContext(ctx); err != nil {
					if ctx.Err() == nil {
						errs <- err
					}
					return
				}
				err := work(&ours)
				if err := errors.Join(err, m.UnlockContext(t.Context())); err != nil {
					errs <- err
					return
				}
				time.Sleep(rand.N(20 * time.Millisecond)) // while one of ours waits in the queue, redsync has no chance
			}
		})
		r := rs.NewMutex("name", redsync.WithTries(1))
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := r.Lock(); err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				err := work(&theirs)
				if _, unlockErr := r.Unlock(); err != nil || unlockErr != nil {
					errs <- errors.Join(err, unlockErr)
					return
				}
				time.Sleep(rand.N(20 * time.Millisecond))
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	t.Logf("redsync %d, quorate %d", theirs.Load(), ours.Load())
	require.Equal(t, sum.Load(), counter.Load())
	require.NotZero(t, theirs.Load())
	require.NotZero(t, ours.Load())
}
