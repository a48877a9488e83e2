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

// A hold lasts as long as it is extended, and a ttl longer.
func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 600 * time.Millisecond
		var seen observer
		q := nodes(t).Quorum(e2e.Timing(ttl), quorate.WithObserver(&seen))
		m := mutex.New(q, "m", quorate.WithoutRenewal())
		assert.ErrorIs(t, m.Extend(t.Context()), quorate.ErrNotHeld)
		require.NoError(t, extends(t.Context(), m, ttl))
		synctest.Wait()
		var why *quorate.Error
		require.ErrorAs(t, seen.events[0].Err, &why)
		assert.ErrorContains(t, why, "Extend was not called in time")
		assert.Empty(t, why.Nodes, "none was asked")
	})
}

// extends locks m, extends the hold beyond its ttl, and has it end. It returns
// what goes wrong.
func extends(ctx context.Context, m *mutex.Mutex, ttl time.Duration) error {
	const slack = 2 * time.Millisecond // and drift: see quorate.Lease.ValidUntil
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	defer m.Unlock()
	lease := m.Lease()
	began := time.Now()
	var all sync.WaitGroup
	var errs [8]error
	for i := range errs { // together, so that some find another's request on its way
		all.Go(func() {
			before := time.Now()
			errs[i] = m.Extend(ctx)
			if end := before.Add(ttl - 3*ttl/100 - slack); errs[i] == nil && lease.ValidUntil().Before(end) {
				errs[i] = fmt.Errorf("it is extended for %v less than a ttl", end.Sub(lease.ValidUntil()))
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	for time.Since(began) < ttl+ttl/4 {
		if err := m.Extend(ctx); err != nil {
			return err
		}
		time.Sleep(ttl / 100)
	}
	if err := context.Cause(lease.Context()); err != nil {
		return fmt.Errorf("lost though it was extended: %w", err)
	}
	last := time.Now()
	select {
	case <-lease.Context().Done():
	case <-time.After(e2e.Patience):
		return errors.New("it does not end though it is not extended")
	}
	if err := context.Cause(lease.Context()); !errors.Is(err, quorate.ErrLost) {
		return fmt.Errorf("it ended with %v", err)
	}
	if d := time.Since(last); d > ttl+ttl/4 {
		return fmt.Errorf("it ended %v after it was extended last", d)
	}
	return nil
}

func TestExtendWithoutQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodes(t)
		q := c.Quorum(e2e.Timing(4 * time.Second))
		m := mutex.New(q, "m", quorate.WithoutRenewal())
		m.Lock()
		until := m.Lease().ValidUntil()
		time.Sleep(time.Millisecond) // a lease of this moment needs no other
		delay(c, time.Hour)
		err := m.Extend(t.Context())
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		var e *quorate.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "extend", e.Op)
		assert.Zero(t, e.Votes, "earlier leases are no votes for the renewal")
		require.Len(t, e.Nodes, 3)
		for _, n := range e.Nodes {
			assert.ErrorContains(t, n.Err, "has not answered")
		}
		assert.Equal(t, until, m.Lease().ValidUntil(), "the old deadline stands")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err = m.Extend(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, quorate.ErrNoQuorum)
		delay(c, 0)
		m.Unlock()
	})
}

// A lock that is released while it is extended was not lost.
func TestExtendOfALockThatIsReleasedMeanwhile(t *testing.T) {
	for ends, want := range map[string]error{"Unlock": quorate.ErrNotHeld, "Close": quorate.ErrClosed} {
		t.Run(ends, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := nodes(t)
				q := c.Quorum(e2e.Timing(quiet))
				m := mutex.New(q, "m")
				m.Lock()
				time.Sleep(time.Millisecond) // a lease of this moment needs no other
				delay(c, 20*time.Millisecond)
				extended := make(chan error)
				go func() { extended <- m.Extend(t.Context()) }()
				synctest.Wait()
				if ends == "Unlock" {
					m.Unlock()
				} else {
					_ = q.Close()
				}
				err := <-extended
				require.ErrorIs(t, err, want)
				assert.NotErrorIs(t, err, quorate.ErrLost)
				assert.NotContains(t, err.Error(), "votes")
			})
		})
	}
}

// The claim that a push has admitted is being renewed at that very moment.
func TestExtendRightAfterAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := nodes(t).Quorum(e2e.Timing(quiet))
		a, b := mutex.New(q, "m"), mutex.New(q, "m")
		for i := range 50 {
			a.Lock()
			next := lockLater(t.Context(), t, b)
			waiters(t, a, 1)
			a.Unlock()
			require.NoError(t, e2e.Receive(t, next))
			require.NoError(t, b.Extend(t.Context()), "hand-over %d", i)
			b.Unlock()
		}
	})
}
