package once_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/quoratetest"
)

// ttl is one that a test can wait out.
const ttl = 800 * time.Millisecond

// loses makes the nodes stand still until the claim of f's context is lost.
func loses(t *testing.T, c *quoratetest.Cluster, ctx context.Context) {
	t.Helper()
	delay(c, time.Hour)
	e2e.Receive(t, ctx.Done())
	assert.ErrorIs(t, context.Cause(ctx), quorate.ErrLost)
	delay(c, 0)
}

func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 2, e2e.Timing(ttl))
		a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
		var next <-chan error
		err := a.DoContext(t.Context(), func(ctx context.Context) error {
			next = later(func() error { return b.DoContext(t.Context(), func(context.Context) error { return nil }) })
			waiters(t, b, 1)
			loses(t, c, ctx)
			return ctx.Err()
		})
		assert.ErrorIs(t, err, context.Canceled, "f's own")
		assert.ErrorIs(t, err, quorate.ErrLost)
		require.NoError(t, e2e.Receive(t, next))
		require.NoError(t, a.DoContext(t.Context(), never(t)))
	})
}

// Work that is done in spite of the loss is recorded, if no other run has begun
// since.
func TestRecordedAfterTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 2, e2e.Timing(ttl))
		a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
		var token uint64
		require.NoError(t, a.DoContext(t.Context(), func(ctx context.Context) error {
			token = once.Lease(ctx).Token()
			loses(t, c, ctx)
			return nil
		}))
		require.NoError(t, b.DoContext(t.Context(), never(t)))
		assert.Equal(t, token, status(t, b).Token)
	})
}

// A run cannot be recorded over one that has begun later.
func TestEarlierRunIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 2, e2e.Timing(ttl))
		a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
		w := newWork()
		var second <-chan error
		var token uint64
		err := a.DoContext(t.Context(), func(ctx context.Context) error {
			loses(t, c, ctx)
			second = later(func() error { return b.DoContext(t.Context(), w.run) })
			token = once.Lease(e2e.Receive(t, w.began)).Token()
			return nil
		})
		assert.ErrorIs(t, err, once.ErrNotRecorded)
		assert.ErrorIs(t, err, quorate.ErrLost)
		assert.NotErrorIs(t, err, quorate.ErrNoQuorum)
		assert.ErrorContains(t, err, "done here, not recorded")
		assert.Equal(t, once.Running, status(t, a).State)
		w.end <- nil
		require.NoError(t, e2e.Receive(t, second))
		assert.Equal(t, token, status(t, a).Token)
	})
}

func TestNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 2, e2e.Timing(ttl))
		a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
		reason := errors.New("the machine shuts down")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := newWork()
		done := later(func() error { return a.DoContext(ctx, w.run) })
		e2e.Receive(t, w.began)
		delay(c, time.Hour)
		w.end <- nil
		cancel(reason)
		err := e2e.Receive(t, done)
		assert.ErrorIs(t, err, once.ErrNotRecorded)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, reason)
		assert.ErrorIs(t, err, quorate.ErrNoQuorum)
		var e *quorate.Error
		require.ErrorAs(t, err, &e)
		assert.Len(t, e.Nodes, 3)
		delay(c, 0)
		require.NoError(t, b.DoContext(t.Context(), func(context.Context) error { return nil }),
			"whether a node has heard of it or not")
	})
}

// Work that is done is recorded, even when no caller waits for it any more.
func TestRecordedAfterTheContextsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 2, e2e.Timing(quiet))
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, once.New(qs[0], "o").DoContext(ctx, func(context.Context) error {
			cancel()
			return nil
		}))
		require.NoError(t, once.New(qs[1], "o").DoContext(t.Context(), never(t)))
	})
}

// Through an outage it is tried until it is recorded.
func TestRecordedAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 2, e2e.Timing(ttl))
		w := newWork()
		done := later(func() error {
			once.New(qs[0], "o").Do(func() { _ = w.run(context.Background()) })
			return nil
		})
		e2e.Receive(t, w.began)
		delay(c, time.Hour)
		w.end <- nil
		select { // not before a lease is over
		case <-done:
			t.Error("it cannot be recorded yet")
		case <-time.After(ttl):
		}
		delay(c, 0)
		require.NoError(t, e2e.Receive(t, done))
		require.NoError(t, once.New(qs[1], "o").DoContext(t.Context(), never(t)))
	})
}

// A server that comes back empty gets the record again. Until then the work is
// still done, as the other servers have the record.
func TestRecordOutlivesEachServer(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	timing := e2e.Timing(ttl)
	qs := fleet(t, c, 2, timing)
	once.New(qs[0], "o").Do(func() {})
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Restart())
		require.NoError(t, once.New(qs[i%2], "o").DoContext(t.Context(), never(t)), "with server %d empty", i)
		require.True(t, e2e.Eventually(func() bool {
			n, err := c.Node(i).Client().Exists(t.Context(), "quorate:{o}:r").Result()
			if err != nil || n == 0 {
				_, _ = once.New(qs[0], "o").Status(t.Context()) // a request must reach the server
				return false
			}
			r, err := qs[0].Check(t.Context())
			return err == nil && r.Ready == c.Len()
		}))
	}
}

func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		qs := bubbled(c, 3, e2e.Timing(ttl))
		a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
		w := newWork()
		runner := later(func() error { return a.DoContext(t.Context(), w.run) })
		ctx := e2e.Receive(t, w.began)
		local := later(func() error { return a.DoContext(t.Context(), never(t)) })
		remote := later(func() error { return b.DoContext(t.Context(), never(t)) })
		waiters(t, once.New(qs[2], "o"), 1)
		require.NoError(t, qs[1].Close())
		assert.ErrorIs(t, e2e.Receive(t, remote), quorate.ErrClosed)
		require.NoError(t, qs[0].Close())
		e2e.Receive(t, ctx.Done())
		assert.ErrorIs(t, context.Cause(ctx), quorate.ErrClosed)
		assert.ErrorIs(t, e2e.Receive(t, local), quorate.ErrClosed)
		w.end <- nil
		err := e2e.Receive(t, runner)
		assert.ErrorIs(t, err, once.ErrNotRecorded)
		assert.ErrorIs(t, err, quorate.ErrClosed)
		require.NoError(t, once.New(qs[2], "o").DoContext(t.Context(), func(context.Context) error { return nil }))
	})
}
