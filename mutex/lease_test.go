package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/mutex"
)

func TestLeaseEndsWithTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		m := mutex.New(q, "m")
		assert.Nil(t, m.Lease())
		m.Lock()
		lease := m.Lease()
		require.NoError(t, lease.Context().Err())
		assert.Same(t, lease.Context(), lease.Context())
		assert.InDelta(t, quiet, time.Until(lease.ValidUntil()), float64(quiet/10))

		// To the next goroutine of this value it is another hold,
		// though the claim is the same.
		next := lockLater(t.Context(), t, m)
		m.Unlock()
		assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrReleased)
		require.NoError(t, e2e.Receive(t, next))
		assert.NotSame(t, lease, m.Lease())
		lease = m.Lease()
		m.Unlock()
		require.Error(t, lease.Context().Err(), "also when it is asked for afterwards")
		assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrReleased)
	})
}

func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 2 * time.Second
		q := nodes(t).Quorum(e2e.Timing(ttl))
		a, b := mutex.New(q, "m"), mutex.New(q, "m")
		a.Lock()
		lease := a.Lease()
		until := lease.ValidUntil()
		require.True(t, e2e.Eventually(func() bool {
			require.NoError(t, context.Cause(lease.Context()))
			return lease.ValidUntil().After(until.Add(ttl))
		}))
		assert.False(t, b.TryLock())
		a.Unlock()
	})
}

// observer keeps the losses of holds.
type observer struct {
	mu     sync.Mutex
	events []quorate.Event
}

func (o *observer) Observe(e quorate.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Kind == quorate.EventLost {
		o.events = append(o.events, e)
	}
}

func (o *observer) kinds() (ks []quorate.EventKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		ks = append(ks, e.Kind)
	}
	return ks
}

func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 400 * time.Millisecond
		c := nodes(t)
		var log e2e.Log
		var seen observer
		q := c.Quorum(e2e.Timing(ttl), log.Option(), quorate.WithObserver(&seen))
		m := mutex.New(q, "m")
		m.Lock()
		lease := m.Lease()
		next := lockLater(t.Context(), t, m)
		delay(c, time.Hour)
		e2e.Receive(t, lease.Context().Done())
		assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrLost)
		assert.False(t, lease.ValidUntil().After(time.Now()))
		// The holder's context ends first. The observer and the log
		// follow.
		require.True(t, e2e.Eventually(func() bool { return len(log.Lines("a hold was lost")) > 0 }))
		delay(c, 0)

		assert.ErrorIs(t, m.Extend(t.Context()), quorate.ErrLost, "lost is final")
		assert.ErrorIs(t, m.UnlockContext(t.Context()), quorate.ErrLost)
		assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrLost, "and stays so")
		require.NoError(t, e2e.Receive(t, next), "the next local waiter gets a claim of its own")
		assert.Greater(t, m.Lease().Token(), lease.Token()+1024)
		m.Unlock()
		synctest.Wait() // the observer is called in a goroutine, and after the log
		assert.Equal(t, []quorate.EventKind{quorate.EventLost}, seen.kinds())
		assert.Len(t, log.Lines("a hold was lost"), 1)
		var why *quorate.Error
		require.ErrorAs(t, seen.events[0].Err, &why)
		assert.ErrorIs(t, why, quorate.ErrLost)
		assert.GreaterOrEqual(t, len(why.Nodes),
			2, "what was wrong with so many nodes that the others are no quorum")
		assert.ErrorContains(t, why, " has not answered")

		m.Lock()
		lease = m.Lease()
		delay(c, time.Hour)
		e2e.Receive(t, lease.Context().Done())
		assert.NotPanics(t, m.Unlock, "what was lost")
		assert.Panics(t, m.Unlock, "but once only")
		delay(c, 0)
	})
}

func TestClosedWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		q := c.Quorum(e2e.Timing(quiet))
		p := c.Quorum(e2e.Timing(quiet))
		a, b, other := mutex.New(q, "m"), mutex.New(p, "m"), mutex.New(q, "m")
		a.Lock()
		lease := a.Lease()
		ahead := lockLater(t.Context(), t, other)
		waiters(t, b, 1)
		local := lockLater(t.Context(), t, a)
		elsewhere := lockLater(t.Context(), t, b)
		waiters(t, b, 2)
		require.NoError(t, q.Close())
		assert.ErrorIs(t, q.Close(), quorate.ErrClosed)
		assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrClosed)
		assert.ErrorIs(t, e2e.Receive(t, ahead), quorate.ErrClosed)
		assert.ErrorIs(t, e2e.Receive(t, local), quorate.ErrClosed)
		require.NoError(t, e2e.Receive(t, elsewhere), "Close releases")
		assert.ErrorIs(t, a.UnlockContext(t.Context()), quorate.ErrClosed)
		b.Unlock()
	})
}

func TestWithoutRenewalAHandOverNeedsANewClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		m := mutex.New(q, "m", quorate.WithoutRenewal(), quorate.WithLinger(quiet))
		m.Lock()
		token := m.Lease().Token()
		next := lockLater(t.Context(), t, m)
		m.Unlock()
		require.NoError(t, e2e.Receive(t, next))
		assert.GreaterOrEqual(t, m.Lease().Token(), token+1024, "the rest of a lease is not a lease")
		m.Unlock()
	})
}

func TestMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, most = 600 * time.Millisecond, 500 * time.Millisecond
		q := nodes(t).Quorum(e2e.Timing(ttl))
		wedged, other := mutex.New(q, "m", quorate.WithMaxHold(most)), mutex.New(q, "m")
		wedged.Lock()
		began := time.Now()
		lease := wedged.Lease()
		require.NoError(t, other.LockContext(t.Context()))
		held := time.Since(began)
		assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrLost, "%v after its deadline",
			time.Since(lease.ValidUntil()))
		assert.Greater(t, held, most-3*ttl/100-2*time.Millisecond)
		assert.Less(t, held, most+ttl)
		assert.ErrorIs(t, wedged.UnlockContext(t.Context()), quorate.ErrLost)
		other.Unlock()

		// It starts again for each goroutine that the claim is passed
		// to.
		wedged.Lock()
		for began = time.Now(); time.Since(began) < most+ttl+ttl/2; {
			next := lockLater(t.Context(), t, wedged)
			wedged.Unlock()
			require.NoError(t, e2e.Receive(t, next))
			time.Sleep(ttl / 100)
		}
		require.NoError(t, wedged.Lease().Context().Err())
		wedged.Unlock()
	})
}

func TestUnlockContextWithoutQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		q := c.Quorum(e2e.Timing(2 * time.Second))
		m := mutex.New(q, "m")
		m.Lock()
		lease := m.Lease()
		delay(c, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := m.UnlockContext(ctx)
		assert.ErrorIs(t, err, quorate.ErrNoQuorum)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		for i := range 3 {
			assert.ErrorContains(t, err, fmt.Sprintf("memory:%d has not answered", i+1))
		}
		assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrReleased, "released all the same")
		assert.True(t, errors.Is(m.UnlockContext(t.Context()), quorate.ErrNotHeld))
		delay(c, 0)
	})
}
