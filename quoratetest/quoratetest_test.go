package quoratetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// The default settings of a Quorum.
const (
	ttl   = 8 * time.Second
	guard = 20 * time.Second
)

// soon is a context of the bubble: a call that waits for longer is stuck.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// lockWithin is an error of a lock that is not held after d.
func lockWithin(t *testing.T, q *quorate.Quorum, d time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	m := mutex.New(q, "another")
	err := m.LockContext(ctx)
	if err == nil {
		err = m.UnlockContext(ctx)
	}
	return err
}

func TestReportIsMadeOnce(t *testing.T) { synctest.Test(t, reportIsMadeOnce) }

// All primitives run in a hundred bubbles in one process, one after the other
// and several at a time.
func TestBubbles(t *testing.T) {
	for range 100 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, allPrimitives)
		})
	}
}

// The nodes of a test are new, and nothing is wrong with that.
func TestNothingIsLoggedAtFirst(t *testing.T) {
	for _, n := range []int{1, 3} {
		var log bytes.Buffer
		q := quoratetest.New(t, n).Quorum(quorate.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, lockWithin(t, q, time.Minute))
		require.NoError(t, q.Close())
		assert.NotContains(t, log.String(), "WARN")
	}
}

// They run outside of a bubble, too.
func TestRealTime(t *testing.T) { allPrimitives(t) }

func allPrimitives(t *testing.T) {
	c := quoratetest.New(t, 3)
	a, b := c.Quorum(), c.Quorum()
	m := mutex.New(a, "m")
	require.NoError(t, m.LockContext(soon(t)))
	require.ErrorIs(t, mutex.New(b, "m").TryLockContext(soon(t)), quorate.ErrHeld)
	require.NoError(t, m.UnlockContext(soon(t)))

	r, w := rwmutex.New(a, "rw"), rwmutex.New(b, "rw")
	require.NoError(t, r.RLockContext(soon(t)))
	written := make(chan error)
	go func() { written <- w.LockContext(soon(t)) }()
	r.RUnlock()
	require.NoError(t, <-written)
	require.NoError(t, w.UnlockContext(soon(t)))

	s := semaphore.NewWeighted(a, "s", 3)
	require.NoError(t, s.Acquire(soon(t), 2))
	require.NoError(t, semaphore.NewWeighted(b, "s", 3).Acquire(soon(t), 1))
	assert.Len(t, c.Holders("s"), 2)
	require.NoError(t, s.Resize(soon(t), 5))

	runs := 0
	for _, q := range []*quorate.Quorum{a, b} {
		require.NoError(t, once.New(q, "o").DoContext(soon(t), func(context.Context) error { runs++; return nil }))
	}
	assert.Equal(t, 1, runs)
	e := leader.New(a, "l", leader.WithID("me"))
	require.NoError(t, e.Campaign(soon(t), "here"))
	l, err := leader.New(b, "l").Leader(soon(t))
	require.NoError(t, err)
	assert.Equal(t, "me", l.ID)
	require.NoError(t, e.Resign(soon(t)))
}

// What tells of names and nodes is answered, as by servers.
func TestOnlookers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		a, b := c.Quorum(quorate.WithOwner("billing")), c.Quorum()
		m, n := mutex.New(a, "job:1"), mutex.New(b, "job:1")
		_, err := n.Holder(soon(t))
		require.ErrorIs(t, err, quorate.ErrNotHeld)
		require.NoError(t, m.LockContext(soon(t)))
		go n.LockContext(soon(t))
		synctest.Wait()
		h, err := n.Holder(soon(t))
		require.NoError(t, err)
		assert.Equal(t, m.Lease().Token(), h.Token)
		assert.Equal(t, 1, h.Waiters)
		r, err := inspect.Name(soon(t), b, "job:1")
		require.NoError(t, err)
		require.Len(t, r.Holders, 1)
		assert.Equal(t, "billing", r.Holders[0].Label)
		assert.Len(t, r.Waiters, 1)
		m.Unlock()
		synctest.Wait()
		n.Unlock()

		o := once.New(a, "job:[2]")
		require.NoError(t, o.DoContext(soon(t), func(context.Context) error {
			s, err := once.New(b, "job:[2]").Status(soon(t))
			require.NoError(t, err)
			assert.Equal(t, once.Running, s.State)
			return nil
		}))
		require.NoError(t, m.LockContext(soon(t)))
		time.Sleep(time.Second) // until all nodes have the release of the Once
		var names []string
		for e, err := range inspect.Names(soon(t), b, "job:*") {
			require.NoError(t, err)
			names = append(names, fmt.Sprint(e.Name, " ", e.Kind))
		}
		assert.Equal(t, []string{"job:1 mutex", "job:[2] once"}, names, "those in use")
		r, err = inspect.Name(soon(t), b, "job:[2]")
		require.NoError(t, err)
		require.NotNil(t, r.Record)
		assert.Equal(t, 3, r.Record.Nodes)

		c.Stop(2)
		report, err := b.Check(soon(t))
		require.NoError(t, err)
		assert.Equal(t, 2, report.Ready)
		assert.Error(t, report.Nodes[2].Err)
		assert.Empty(t, report.Nodes[0].Warnings)
	})
}

// Holders tells what the nodes have, whatever clients say.
func TestHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		a, b := mutex.New(c.Quorum(), "m"), mutex.New(c.Quorum(), "m")
		assert.Empty(t, c.Holders("m"))
		require.NoError(t, a.LockContext(soon(t)))
		go b.LockContext(soon(t))
		synctest.Wait()
		held := c.Holders("m")
		require.Len(t, held, 1)
		assert.Equal(t, a.Lease().Token(), held[0].Token)
		assert.Equal(t, 1, held[0].Waiters)
		assert.Equal(t, ttl, held[0].Left)
		a.Unlock()
		synctest.Wait()
		require.Len(t, c.Holders("m"), 1)
		assert.Equal(t, b.Lease().Token(), c.Holders("m")[0].Token)
		b.Unlock()
		synctest.Wait()
		assert.Empty(t, c.Holders("m"))
	})
}

// A minority that is down is not noticed. Without a majority a hold is lost as
// its lease ends, and there is none until the guard time of a node is over.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		m := mutex.New(q, "m")
		require.NoError(t, m.LockContext(soon(t)))
		c.Stop(0)
		time.Sleep(time.Minute)
		require.NoError(t, m.Lease().Context().Err())
		require.NoError(t, lockWithin(t, q, time.Second))

		c.Stop(1)
		stopped := time.Now()
		<-m.Lease().Context().Done()
		assert.Less(t, time.Since(stopped), ttl)
		assert.ErrorIs(t, context.Cause(m.Lease().Context()), quorate.ErrLost)
		require.ErrorIs(t, lockWithin(t, q, time.Minute), quorate.ErrNoQuorum)

		c.Start(1)
		require.ErrorIs(t, lockWithin(t, q, guard-time.Second), quorate.ErrNoQuorum)
		require.NoError(t, lockWithin(t, q, 5*time.Second))
		m.Unlock() // nothing: it was lost
	})
}

// Two calls of Close at a time both return in a bubble, where the first waits
// for time to pass. One of them fails with ErrClosed.
func TestClosesAtATime(t *testing.T) {
	// The bubble's time stands still.
	stuck := time.AfterFunc(time.Minute, func() { panic("two calls of Close at a time hang") })
	defer stuck.Stop()
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		require.NoError(t, mutex.New(q, "m").LockContext(soon(t)))
		c.Partition(q, 0, 1, 2)
		began, closed := time.Now(), make(chan error, 2)
		took := make(chan time.Duration, 2)
		for range cap(closed) {
			go func() {
				closed <- q.Close()
				took <- time.Since(began)
			}()
		}
		one, other := <-closed, <-closed
		assert.Equal(t, <-took, <-took, "the second one waits for the first")
		assert.NotEqual(t, errors.Is(one, quorate.ErrClosed),
			errors.Is(other, quorate.ErrClosed), "%v; %v", one, other)
	})
}

// A node that forgot everything lets no second holder in.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		m, n := mutex.New(c.Quorum(), "m"), mutex.New(c.Quorum(), "m")
		require.NoError(t, m.LockContext(soon(t)))
		synctest.Wait() // the third node, which the lock did not need, has it, too
		c.Forget(0)
		c.Stop(1)
		require.ErrorIs(t, n.TryLockContext(soon(t)), quorate.ErrNoQuorum)
		assert.Len(t, c.Holders("m"), 1, "two of three nodes remember it")
		c.Forget(1)
		assert.Empty(t, c.Holders("m"))
		require.Error(t, n.TryLockContext(soon(t)), "in its guard time a node does not vote")
		require.NoError(t, m.Lease().Context().Err())
	})
}

// A Quorum that is cut off loses what it holds before another one gets it.
func TestHolderThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		cut, other := c.Quorum(), c.Quorum()
		m, n := mutex.New(cut, "m"), mutex.New(other, "m")
		require.NoError(t, m.LockContext(soon(t)))
		first := m.Lease()
		c.Partition(cut, 0, 1)
		require.NoError(t, n.LockContext(soon(t)))
		require.ErrorIs(t, context.Cause(first.Context()), quorate.ErrLost)
		assert.Greater(t, n.Lease().Token(), first.Token())
		require.Error(t, lockWithin(t, cut, time.Minute))
		c.Partition(cut)
		require.NoError(t, lockWithin(t, cut, 5*time.Second))
		n.Unlock()
	})
}

// A lock takes as long as the nodes of a majority.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		c.Delay(0, 30*time.Millisecond)
		c.Delay(1, 50*time.Millisecond)
		c.Delay(2, 70*time.Millisecond)
		began := time.Now()
		m := mutex.New(q, "m")
		require.NoError(t, m.LockContext(soon(t)))
		assert.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
		assert.Less(t, time.Since(began), 200*time.Millisecond)
		c.Delay(1, 0)
		m.Unlock()
	})
}

// A holder that hears is out at once, and one that is cut off when its lease
// ends: in the bubble's time.
func TestEvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		a, b := c.Quorum(), c.Quorum()
		evicted := func(cut bool) (after time.Duration, cause error) {
			m := mutex.New(a, "m")
			require.NoError(t, m.LockContext(soon(t)))
			l := m.Lease()
			if cut {
				c.Partition(a, 0, 1, 2)
			}
			began := time.Now()
			require.NoError(t, inspect.Evict(soon(t), b, "m", l.Token()))
			return time.Since(began), context.Cause(l.Context())
		}
		after, cause := evicted(false)
		assert.Less(t, after, time.Second)
		require.ErrorIs(t, cause, quorate.ErrEvicted)
		after, cause = evicted(true)
		assert.Greater(t, after, ttl/2)
		assert.Less(t, after, ttl+time.Second)
		require.ErrorIs(t, cause, quorate.ErrLost)
		require.NotErrorIs(t, cause, quorate.ErrEvicted)
		for range 400 { // a push that comes in the moment of the cut is not heard either
			c.Partition(a)
			require.Eventually(t, func() bool { _, err := a.Check(soon(t)); return err == nil }, time.Minute,
				time.Second)
			_, cause = evicted(true)
			require.NotErrorIs(t, cause, quorate.ErrEvicted)
		}
	})
}
