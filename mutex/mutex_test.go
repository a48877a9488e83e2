package mutex_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
)

var _ sync.Locker = (*mutex.Mutex)(nil)

func TestTwoValuesExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		a, b := mutex.New(q, "m"), mutex.New(q, "m")
		other := mutex.New(q, "other")

		a.Lock()
		first := a.Lease().Token()
		assert.False(t, b.TryLock())
		assert.ErrorIs(t, b.TryLockContext(t.Context()), quorate.ErrHeld)
		assert.False(t, a.TryLock(), "a value excludes itself, too")
		require.True(t, other.TryLock(), "another name is another lock")
		other.Unlock()

		waiting := lockLater(t.Context(), t, b)
		waiters(t, a, 1)
		a.Unlock()
		require.NoError(t, e2e.Receive(t, waiting))
		assert.Greater(t, b.Lease().Token(), first)
		assert.Nil(t, a.Lease())
		require.NoError(t, b.UnlockContext(t.Context()))
		assert.True(t, a.TryLock(), "free when UnlockContext has returned")
		a.Unlock()
	})
}

// Only a node that can know it counts for "not held". A node that lost its data
// does not, nor one that does not answer.
func TestHolderNotKnown(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	m := mutex.New(q, "m")
	m.Lock()
	defer m.Unlock()
	require.NoError(t, c.Node(0).Client().FlushAll(t.Context()).Err())
	require.NoError(t, c.Node(1).Stop())
	h, err := m.Holder(t.Context())
	assert.ErrorIs(t, err, quorate.ErrNoQuorum, "%+v", h)
	require.NoError(t, c.Node(1).Cont())
	require.True(t, e2e.Eventually(func() bool {
		_, err := m.Holder(t.Context())
		return err == nil
	}))

	require.NoError(t, c.Node(1).Client().FlushAll(t.Context()).Err())
	h, err = m.Holder(t.Context())
	assert.ErrorIs(t, err, quorate.ErrNoQuorum, "%+v: all answer, and two have forgotten", h)
}

// A node that lost its data and is of the set again may lack the holder until
// its guard time is over.
func TestHolderAfterALossOfData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		m, other := mutex.New(c.Quorum(), "m"), mutex.New(c.Quorum(), "other")
		require.NoError(t, other.Do(t.Context(), func(context.Context) error { return nil }))
		_, err := m.Holder(t.Context())
		require.ErrorIs(t, err, quorate.ErrNotHeld)
		c.Forget(0)
		c.Forget(1)
		time.Sleep(5 * time.Second)
		_, err = m.Holder(t.Context())
		assert.ErrorIs(t, err, quorate.ErrNoQuorum)
		assert.ErrorContains(t, err, "is new or lost its data")
		time.Sleep(30 * time.Second)
		_, err = m.Holder(t.Context())
		assert.ErrorIs(t, err, quorate.ErrNotHeld)
	})
}

// Half of four nodes are no majority, though a claim needs more than the other
// half.
func TestHolderWithoutAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 4)
		m := mutex.New(c.Quorum(), "m")
		require.NoError(t, m.Do(t.Context(), func(context.Context) error { return nil }))
		c.Stop(0)
		c.Stop(1)
		_, err := m.Holder(t.Context())
		assert.ErrorIs(t, err, quorate.ErrNoQuorum)
	})
}

func TestHolder(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	a, b := mutex.New(q, "m"), mutex.New(q, "m")
	_, err := a.Holder(t.Context())
	require.ErrorIs(t, err, quorate.ErrNotHeld)

	a.Lock()
	h, err := b.Holder(t.Context())
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, a.Lease().Token(), h.Token)
	assert.Equal(t, os.Getpid(), h.PID)
	assert.Equal(t, host, h.Host)
	assert.InDelta(t, quiet, h.Left, float64(quiet/10))
	assert.Zero(t, h.Waiters)
	assert.False(t, h.Foreign)
	a.Unlock()

	// Another Redlock client on the redlock key of that name.
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Set(t.Context(), "m", "foreign", quiet).Err())
	}
	h, err = b.Holder(t.Context())
	require.NoError(t, err)
	assert.True(t, h.Foreign)
	assert.Positive(t, h.Left)
	err = a.TryLockContext(t.Context())
	require.ErrorIs(t, err, quorate.ErrHeld)
	assert.ErrorContains(t, err, "another library holds the key")
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Del(t.Context(), "m").Err())
	}
	assert.True(t, a.TryLock())
	a.Unlock()
}

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		a, b := mutex.New(q, "m"), mutex.New(q, "m")
		boom := errors.New("boom")
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, 1)

		var inner context.Context
		require.NoError(t, a.Do(ctx, func(ctx context.Context) error {
			inner = ctx
			assert.False(t, b.TryLock())
			assert.NotNil(t, a.Lease())
			return ctx.Err()
		}))
		assert.Equal(t, 1, inner.Value(key{}))
		assert.ErrorIs(t, context.Cause(inner), quorate.ErrReleased)

		assert.ErrorIs(t, a.Do(ctx, func(context.Context) error { return boom }), boom)
		assert.PanicsWithError(t, "boom", func() {
			_ = a.Do(ctx, func(context.Context) error { panic(boom) })
		})
		assert.True(t, e2e.Eventually(b.TryLock), "the panic has released it")

		ended, cancel := context.WithCancel(ctx)
		cancel()
		assert.ErrorIs(t, a.Do(ended, func(context.Context) error {
			t.Error("called without the lock")
			return nil
		}), context.Canceled)
		b.Unlock()

		cancelled, cancel := context.WithCancel(ctx)
		err := a.Do(cancelled, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			assert.NotNil(t, a.Lease(), "the context's end does not end the hold")
			return ctx.Err()
		})
		assert.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, quorate.ErrLost)
	})
}

func TestDoLearnsOfTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		q := c.Quorum(e2e.Timing(400 * time.Millisecond))
		m := mutex.New(q, "m")
		err := m.Do(t.Context(), func(ctx context.Context) error {
			delay(c, time.Hour)
			e2e.Receive(t, ctx.Done())
			assert.ErrorIs(t, ctx.Err(), context.Canceled)
			assert.ErrorIs(t, context.Cause(ctx), quorate.ErrLost)
			return nil
		})
		assert.ErrorIs(t, err, quorate.ErrLost, "though f has not seen it")
		var e *quorate.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "do", e.Op)
		assert.Equal(t, "m", e.Name)
		delay(c, 0)
	})
}
