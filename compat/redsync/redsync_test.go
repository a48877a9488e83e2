package redsync_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/compat/redsync"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

// Lock waits for as long as redsync would try, and has its place in the queue
// meanwhile.
func TestTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		rs, q := redsync.New(c.Quorum()), c.Quorum()
		other := mutex.New(q, "name")
		require.NoError(t, other.LockContext(t.Context()))
		waits := func(least, most time.Duration, options ...redsync.Option) {
			t.Helper()
			began := time.Now()
			err := rs.NewMutex("name", options...).Lock()
			assert.WithinRange(t, time.Now(), began.Add(least), began.Add(most))
			require.ErrorIs(t, err, redsync.ErrFailed)
			require.ErrorIs(t, err, quorate.ErrHeld)
			_, taken := errors.AsType[*redsync.ErrTaken](err)
			assert.True(t, taken, err)
		}
		const trip = 400 * time.Millisecond
		waits(31*50*time.Millisecond, 31*250*time.Millisecond+trip)
		waits(2*time.Second, 2*time.Second+trip, redsync.WithTries(3), redsync.WithRetryDelay(time.Second))
		waits(0, trip, redsync.WithTries(1), redsync.WithRetryDelay(time.Second))
		waits(3*time.Second, 3*time.Second+trip, redsync.WithTries(3),
			redsync.WithRetryDelayFunc(func(try int) time.Duration { return time.Duration(try) * time.Second }))
		waits(time.Minute-time.Second, time.Minute+trip, redsync.WithTries(60_000),
			redsync.WithRetryDelay(time.Millisecond))
		require.ErrorIs(t, rs.NewMutex("name", redsync.WithTries(0)).Lock(), redsync.ErrFailed)

		m := rs.NewMutex("name")
		locked := make(chan error, 1)
		go func() { locked <- m.Lock() }()
		synctest.Wait()
		other.Unlock()
		require.NoError(t, other.LockContext(t.Context())) // after m
		require.NoError(t, <-locked)
		assert.False(t, valid(m), "its expiry is over: it did not unlock")
	})
}

func valid(m *redsync.Mutex) bool { ok, _ := m.Valid(); return ok }

// An expiry that the guard time does not allow for: the lease is that of the
// quorum, and is renewed until then, but not any longer.
func TestLongExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		rs := redsync.New(q)
		m := rs.NewMutex("name", redsync.WithExpiry(time.Minute))
		other := redsync.New(c.Quorum()).NewMutex("name", redsync.WithExpiry(time.Minute), redsync.WithTries(1000))
		began := time.Now()
		require.NoError(t, m.Lock())
		time.Sleep(30 * time.Second)
		require.True(t, valid(m))
		require.Error(t, other.TryLock())
		ok, err := m.Extend()
		require.True(t, ok, err)
		time.Sleep(50 * time.Second)
		require.True(t, valid(m), "it was extended")
		until := m.Until()
		assert.True(t, until.After(time.Now()))
		assert.True(t, until.Before(time.Now().Add(8*time.Second)), "no longer than the lease")
		require.NoError(t, other.Lock())
		assert.WithinRange(t, time.Now(), began.Add(89*time.Second), began.Add(91*time.Second))
		assert.False(t, valid(m))
		assert.False(t, m.Until().After(time.Now()))
		ok, err = m.Extend()
		assert.False(t, ok)
		require.ErrorIs(t, err, redsync.ErrExtendFailed)
		ok, err = m.Unlock()
		assert.False(t, ok)
		require.ErrorIs(t, err, redsync.ErrLockAlreadyExpired)

		// One that is unlocked does not expire later.
		ok, err = other.Unlock()
		require.True(t, ok, err)
		require.NoError(t, other.Lock())
		time.Sleep(2 * time.Minute)
		ok, err = other.Unlock()
		assert.False(t, ok)
		require.ErrorIs(t, err, redsync.ErrLockAlreadyExpired)
		require.NoError(t, m.Lock())
		c.Partition(q, 0, 1, 2)
		time.Sleep(9 * time.Second)
		assert.False(t, valid(m), "it is cut off, and lost")
		assert.False(t, m.Until().After(time.Now()))
	})
}

// The error shows whether nodes are missing or the lock is taken.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		m := redsync.New(q).NewMutex("name", redsync.WithTries(3))
		require.NoError(t, m.Lock())
		time.Sleep(time.Second)
		c.Stop(0)
		c.Stop(1)
		for _, f := range []struct {
			what error
			do   func() error
		}{
			{redsync.ErrExtendFailed, func() error { _, err := m.Extend(); return err }},
			{quorate.ErrNoQuorum, func() error { _, err := m.Unlock(); return err }},
			{redsync.ErrFailed, m.TryLock},
		} {
			err := f.do()
			require.ErrorIs(t, err, f.what)
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			node, is := errors.AsType[*redsync.RedisError](err)
			require.True(t, is, err)
			require.Error(t, node.Err)
			_, taken := errors.AsType[*redsync.ErrTaken](err)
			assert.False(t, taken, err)
		}
		_ = q.Close() // two nodes acknowledge no release
		require.ErrorIs(t, m.Lock(), quorate.ErrClosed)
		assert.NotErrorIs(t, m.Lock(), redsync.ErrFailed, "it does not help to try again")
	})
}

// What cannot be had is refused by each call, with the reason.
func TestRefused(t *testing.T) {
	c := quoratetest.New(t, 3)
	rs := redsync.New(c.Quorum())
	for reason, o := range map[string]redsync.Option{
		"WithValue":         redsync.WithValue("x"),
		"WithGenValueFunc":  redsync.WithGenValueFunc(func() (string, error) { return os.Hostname() }),
		"WithSetNXOnExtend": redsync.WithSetNXOnExtend(),
		"WithExpiry":        redsync.WithExpiry(30), // nanoseconds
		"WithTimeoutFactor": redsync.WithTimeoutFactor(0),
		"WithDriftFactor":   redsync.WithDriftFactor(1),
	} {
		m := rs.NewMutex("name", o)
		for _, f := range []func() error{
			m.Lock, m.TryLock,
			func() error { _, err := m.Unlock(); return err },
			func() error { _, err := m.Extend(); return err },
		} {
			err := f()
			require.ErrorIs(t, err, quorate.ErrInvalid)
			require.ErrorContains(t, err, reason)
			assert.NotErrorIs(t, err, redsync.ErrFailed)
		}
		assert.False(t, valid(m))
	}
	require.ErrorIs(t, rs.NewMutex("{name}").Lock(), quorate.ErrInvalid)
	assert.Panics(t, func() { redsync.New(nil) })
	m := rs.NewMutex("name", redsync.WithFailFast(true), redsync.WithShufflePools(true),
		redsync.WithDriftFactor(0.5), redsync.WithTimeoutFactor(0.9), redsync.OptionFunc(func(*redsync.Mutex) {}))
	var missing context.Context // redsync takes none for the background
	require.NoError(t, m.LockContext(missing))
	assert.True(t, m.Until().Before(time.Now().Add(4*time.Second)))
	ok, err := m.ExtendContext(missing)
	require.True(t, ok, err)
	ok, err = m.UnlockContext(missing)
	require.True(t, ok, err)
}
