package inspect_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/quoratetest"
	"github.com/quorate/quorate/semaphore"
)

// sights runs a sequence in a goroutine, and returns what it yields.
type sight struct {
	inspect.Report
	err error
}

func sights(seq iter.Seq2[inspect.Report, error]) <-chan sight {
	all := make(chan sight, 100)
	go func() {
		defer close(all)
		for r, err := range seq {
			all <- sight{r, err}
		}
	}()
	return all
}

// next is the last of what has been yielded within d. It fails the test if that
// is nothing.
func next(t *testing.T, all <-chan sight, d time.Duration) (s sight) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	n := len(all)
	require.Positive(t, n, "nothing was yielded in %v", d)
	for range n {
		s = <-all
	}
	return s
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		first, second := mutex.New(c.Quorum(), "m"), mutex.New(c.Quorum(), "m")
		ctx, cancel := context.WithCancel(t.Context())
		all := sights(inspect.Watch(ctx, c.Quorum(), "m"))
		s := next(t, all, 0)
		require.NoError(t, s.err)
		assert.Equal(t, inspect.None, s.Kind)

		first.Lock()
		s = next(t, all, time.Second)
		require.Len(t, s.Holders, 1)
		assert.Equal(t, first.Lease().Token(), s.Holders[0].Token)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, all, "renewals are no change")

		go second.Lock()
		s = next(t, all, time.Second)
		require.Len(t, s.Waiters, 1)
		assert.Equal(t, first.Lease().Token(), s.Holders[0].Token)
		first.Unlock()
		s = next(t, all, time.Second)
		require.Len(t, s.Holders, 1)
		assert.Empty(t, s.Waiters)
		assert.Equal(t, second.Lease().Token(), s.Holders[0].Token)
		second.Unlock()
		s = next(t, all, time.Second)
		assert.Empty(t, s.Holders)

		cancel()
		_, more := <-all
		assert.False(t, more, "the sequence ends with its context, without an error")
	})
}

// An outage is yielded once, and its end too.
func TestWatchWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		m := mutex.New(q, "m")
		m.Lock()
		eye := c.Quorum()
		all := sights(inspect.Watch(t.Context(), eye, "m"))
		require.Len(t, next(t, all, 0).Holders, 1)
		c.Partition(eye, 0, 1)
		s := next(t, all, time.Minute)
		require.ErrorIs(t, s.err, quorate.ErrNoQuorum)
		assert.Len(t, s.Nodes, 3)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, all, "an outage is yielded once")
		c.Partition(eye)
		s = next(t, all, time.Minute)
		require.NoError(t, s.err)
		require.Len(t, s.Holders, 1, "it goes on though nothing has changed")
		require.NoError(t, eye.Close())
		_, more := <-all
		assert.False(t, more, "the sequence ends with its Quorum")
		m.Unlock()
	})
}

// Permits that come back, a Resize, and a record are changes as well.
func TestWatchOtherChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quoratetest.New(t, 3)
		q := c.Quorum()
		sem := semaphore.NewWeighted(q, "s", 5)
		require.NoError(t, sem.Acquire(t.Context(), 3))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		all := sights(inspect.Watch(ctx, q, "s"))
		assert.EqualValues(t, 3, next(t, all, 0).Holders[0].Weight)
		sem.Release(1)
		assert.EqualValues(t, 2, next(t, all, time.Second).Holders[0].Weight)
		require.NoError(t, sem.Resize(t.Context(), 7))
		assert.EqualValues(t, 7, next(t, all, time.Second).Capacity)
		sem.Release(2)

		e := leader.New(q, "leader", leader.WithID("me"))
		require.NoError(t, e.Campaign(t.Context(), "a"))
		all = sights(inspect.Watch(ctx, q, "leader"))
		assert.Equal(t, "a", next(t, all, 0).Record.Value)
		require.NoError(t, e.Proclaim(t.Context(), "b"))
		assert.Equal(t, "b", next(t, all, time.Second).Record.Value)
		require.NoError(t, e.Resign(t.Context()))
	})
}

// The sequence leaves nothing behind wherever it ends: TestMain looks for
// goroutines.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	for r, err := range inspect.Watch(t.Context(), q, "m") {
		require.NoError(t, err)
		assert.Equal(t, "m", r.Name)
		break
	}
	n := 0
	for _, err := range inspect.Watch(t.Context(), q, "") {
		n++
		require.ErrorIs(t, err, quorate.ErrInvalid)
	}
	assert.Equal(t, 1, n)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range inspect.Watch(ended, q, "m") {
		assert.Fail(t, "the context has ended")
	}

	// On real servers, with a holder in between.
	m := mutex.New(q, "m")
	err := errors.New("it never ended")
	var held, freed bool
	for r, e := range inspect.Watch(t.Context(), q, "m") {
		require.NoError(t, e)
		switch {
		case len(r.Holders) == 0 && !held:
			require.NoError(t, m.LockContext(t.Context()))
		case len(r.Holders) == 1 && !held:
			held = true
			assert.Equal(t, m.Lease().Token(), r.Holders[0].Token)
			m.Unlock()
		case len(r.Holders) == 0:
			freed, err = true, nil
		}
		if freed {
			break
		}
	}
	require.NoError(t, err)
}
