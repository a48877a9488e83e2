package quoratecertmagic_test

import (
	"bytes"
	"context"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	quoratecertmagic "github.com/quorate/quorate/compat/certmagic"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// storage is the wrapped storage of a process.
func storage(t *testing.T, q *quorate.Quorum, opts ...quorate.LockOption) *quoratecertmagic.Storage {
	return quoratecertmagic.New(&certmagic.FileStorage{Path: t.TempDir()}, q, opts...)
}

// within is a context of the bubble.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// What certmagic tests of its FileStorage, and what its interface says of a
// storage: all but the locks is that of the wrapped one.
func TestStorage(t *testing.T) {
	s := storage(t, quoratetest.New(t, 1).Quorum())
	ctx := t.Context()
	_, err := s.Load(ctx, "foo")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Store(ctx, "foo", []byte("bar")))
	text, err := s.Load(ctx, "foo")
	require.NoError(t, err)
	assert.Equal(t, "bar", string(text))
	require.NoError(t, s.Store(ctx, "a/b/c", []byte("d")))
	assert.True(t, s.Exists(ctx, "a/b"))
	keys, err := s.List(ctx, "a", true)
	require.NoError(t, err)
	assert.Contains(t, keys, "a/b/c")
	info, err := s.Stat(ctx, "a/b/c")
	require.NoError(t, err)
	assert.Equal(t, int64(1), info.Size)
	require.NoError(t, s.Delete(ctx, "a"))
	require.NoError(t, s.Delete(ctx, "a"))
	assert.False(t, s.Exists(ctx, "a/b/c"))

	a, b := bytes.Repeat([]byte("a"), 4<<20), bytes.Repeat([]byte("b"), 4<<20)
	require.NoError(t, s.Store(ctx, "foo", a))
	done := make(chan error, 1)
	go func() { done <- s.Store(ctx, "foo", b) }()
	text, err = s.Load(ctx, "foo")
	require.NoError(t, err)
	require.NoError(t, <-done)
	assert.Len(t, text, 4<<20)
	assert.Contains(t, s.String(), "FileStorage:")
}

// The same as certmagic's TestFileStorageWriteLock, in two processes. A context
// that has ended locks nothing, free or not, and does no harm to Unlock.
func TestWriteLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		a, b := storage(t, c.Quorum()), storage(t, c.Quorum())
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 {
			require.ErrorIs(t, a.Lock(over, "foo"), context.Canceled)
			require.NoError(t, a.Lock(t.Context(), "foo"))
			require.ErrorIs(t, a.Lock(over, "foo"), context.Canceled)
			require.ErrorIs(t, b.Lock(over, "foo"), context.Canceled)
			require.NoError(t, a.Unlock(over, "foo"))
			synctest.Wait()
		}
		require.NoError(t, b.Lock(within(t, time.Second), "foo"))
		require.NoError(t, b.Unlock(t.Context(), "foo"))
		synctest.Wait()
		assert.Empty(t, c.Holders("certmagic:foo"))
	})
}

// Goroutines and processes wait for their turn, or do not.
func TestContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		all := []*quoratecertmagic.Storage{storage(t, c.Quorum()), storage(t, c.Quorum())}
		all = append(all, all[0]) // two goroutines of one process
		inside, ended := 0, make(chan error)
		for _, s := range all {
			go func() {
				for range 20 {
					if err := s.Lock(t.Context(), "issue_cert_*.example.com"); err != nil {
						ended <- err
						return
					}
					inside++
					assert.Equal(t, 1, inside)
					time.Sleep(time.Minute) // longer than a lease
					assert.Equal(t, 1, inside)
					inside--
					if err := s.Unlock(t.Context(), "issue_cert_*.example.com"); err != nil {
						ended <- err
						return
					}
				}
				ended <- nil
			}()
		}
		time.Sleep(time.Second)
		for _, s := range all {
			ok, err := s.TryLock(t.Context(), "Issue_Cert_*.example.com") // Safe makes it the same name
			require.NoError(t, err)
			assert.False(t, ok)
		}
		for range all {
			require.NoError(t, <-ended)
		}
		for _, s := range all[:2] {
			ok, err := s.TryLock(t.Context(), "issue_cert_*.example.com")
			require.NoError(t, err)
			assert.True(t, ok)
			require.NoError(t, s.Unlock(t.Context(), "issue_cert_*.example.com"))
		}
	})
}

// Waiting ends with the context, and says who is in the way.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		a, b := storage(t, c.Quorum()), storage(t, c.Quorum())
		require.NoError(t, a.Lock(t.Context(), "x"))
		err := b.Lock(within(t, time.Minute), "x")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, quorate.ErrHeld)
		require.ErrorIs(t, b.Unlock(t.Context(), "x"), quorate.ErrNotHeld)
		require.NoError(t, a.Unlock(t.Context(), "x"))
		c.Stop(0)
		c.Stop(1)
		ok, err := b.TryLock(within(t, time.Minute), "x")
		assert.False(t, ok)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
	})
}

// What is not held is neither unlocked nor renewed.
func TestNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		s := storage(t, q)
		require.ErrorIs(t, s.Unlock(t.Context(), "x"), quorate.ErrNotHeld)
		require.ErrorIs(t, s.RenewLockLease(t.Context(), "x", time.Minute), quorate.ErrNotHeld)
		require.NoError(t, s.Lock(t.Context(), "x"))
		require.NoError(t, s.RenewLockLease(t.Context(), "x", time.Minute))
		require.NoError(t, s.Unlock(t.Context(), "x"))
		require.ErrorIs(t, s.Unlock(t.Context(), "x"), quorate.ErrNotHeld)
		require.NoError(t, s.Lock(t.Context(), "x"))
		c.Stop(0)
		c.Stop(1)
		require.NoError(t, s.Unlock(t.Context(), "x"), "the nodes learn of it later")
		c.Start(0)
		c.Start(1)
		require.NoError(t, s.Lock(within(t, time.Minute), "x"))
		require.NoError(t, q.Close())
		require.ErrorIs(t, s.Unlock(t.Context(), "x"), quorate.ErrClosed)
		assert.Panics(t, func() { quoratecertmagic.New(nil, q) })
		assert.Panics(t, func() { storage(t, q, quorate.WithTTL(0)) })
	})
}

// A process that lost the lock waits for its turn when it renews the lease, and
// its Unlock does not unlock what another goroutine has.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		qa := c.Quorum()
		a, b := storage(t, qa), storage(t, c.Quorum())
		require.NoError(t, a.Lock(t.Context(), "x"))
		c.Partition(qa, 0, 1, 2)
		require.NoError(t, b.Lock(within(t, time.Minute), "x"), "when the lease has expired")
		require.ErrorIs(t, a.RenewLockLease(t.Context(), "x", time.Minute), quorate.ErrNoQuorum)
		c.Partition(qa)
		require.ErrorIs(t, a.RenewLockLease(t.Context(), "x", time.Minute), quorate.ErrHeld)
		time.AfterFunc(time.Minute, func() { assert.NoError(t, b.Unlock(t.Context(), "x")) })
		require.NoError(t, a.RenewLockLease(t.Context(), "x", time.Hour))
		ok, err := b.TryLock(t.Context(), "x")
		require.NoError(t, err)
		assert.False(t, ok)
		require.NoError(t, a.Unlock(t.Context(), "x"))

		// It is lost, and is not renewed.
		require.NoError(t, a.Lock(t.Context(), "x"))
		c.Partition(qa, 0, 1, 2)
		time.Sleep(time.Minute)
		c.Partition(qa)
		require.ErrorIs(t, a.Unlock(t.Context(), "x"), quorate.ErrLost)
		require.ErrorIs(t, a.Unlock(t.Context(), "x"), quorate.ErrNotHeld)

		// It is lost, and another goroutine has the name.
		require.NoError(t, a.Lock(within(t, time.Minute), "x"))
		c.Partition(qa, 0, 1, 2)
		time.Sleep(time.Minute)
		require.ErrorIs(t, a.RenewLockLease(t.Context(), "x", time.Second), quorate.ErrNoQuorum)
		c.Partition(qa)
		require.NoError(t, a.Lock(within(t, time.Minute), "x"))
		require.ErrorIs(t, a.Unlock(t.Context(), "x"), quorate.ErrLost)
		ok, err = b.TryLock(t.Context(), "x")
		require.NoError(t, err)
		assert.False(t, ok, "the other goroutine has it")
		require.NoError(t, a.Unlock(t.Context(), "x"))
		synctest.Wait()
		assert.Empty(t, c.Holders("certmagic:x"))
	})
}

// A goroutine waits in RenewLockLease for a name that it has lost to another
// one of its process. That one's Unlock unlocks the name.
func TestLossToAGoroutineOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		s := storage(t, q)
		require.NoError(t, s.Lock(t.Context(), "x"))
		other, renewed := make(chan error, 1), make(chan error, 1)
		go func() { other <- s.Lock(t.Context(), "x") }()
		synctest.Wait()
		c.Partition(q, 0, 1, 2)
		time.Sleep(time.Minute)
		c.Partition(q)
		go func() { renewed <- s.RenewLockLease(t.Context(), "x", time.Hour) }()
		require.NoError(t, <-other)
		synctest.Wait()
		assert.Empty(t, renewed, "it waits")
		require.NoError(t, s.Unlock(t.Context(), "x"))
		began := time.Now()
		require.NoError(t, <-renewed)
		assert.Less(t, time.Since(began), time.Minute)
		require.NoError(t, s.Unlock(t.Context(), "x"))
		require.ErrorIs(t, s.Unlock(t.Context(), "x"), quorate.ErrNotHeld)
		synctest.Wait()
		assert.Empty(t, c.Holders("certmagic:x"))
	})
}

// The lock is the mutex of that name, which other tools can see.
func TestName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		s := storage(t, c.Quorum())
		require.NoError(t, s.Lock(t.Context(), "issue_cert_{*}.Example.com"))
		require.ErrorIs(t, mutex.New(c.Quorum(),
			"certmagic:issue_cert_wildcard_.example.com").TryLockContext(t.Context()), quorate.ErrHeld)
		require.NoError(t, s.Unlock(t.Context(), "issue_cert_{*}.Example.com"))
	})
}
