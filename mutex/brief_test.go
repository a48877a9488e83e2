package mutex_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// bustle has many goroutines lock and unlock names of their own, until the test
// ends or stop is called. It returns when all have begun.
func bustle(t *testing.T, q *quorate.Quorum, locks *atomic.Int64) (stop func()) {
	var all, begun sync.WaitGroup
	var over atomic.Bool
	for i := range 64 {
		m := mutex.New(q, "bustle "+strconv.Itoa(i))
		begun.Add(1)
		all.Go(func() {
			has := sync.OnceFunc(begun.Done)
			defer has() // of a lock that failed, too
			for first := true; first || !over.Load(); first = false {
				if !assert.NoError(t, m.LockContext(t.Context())) {
					break
				}
				err := m.UnlockContext(t.Context())
				assert.NoError(t, err)
				locks.Add(1)
				has()
			}
		})
	}
	begun.Wait()
	stop = func() { over.Store(true); all.Wait() }
	t.Cleanup(stop)
	return stop
}

// sets is how many keys the servers have written, all of them together.
func sets(t *testing.T, c *redistest.Cluster) (n int) {
	t.Helper()
	for i := range c.Len() {
		one := c.Node(i).Calls(t, "set")
		require.Positive(t, one, "of server %d", i)
		n += one
	}
	return n
}

// Where many are at work, a lock that is given back at once costs only a quorum
// of the nodes something; one that is kept is brought to all.
func TestShortHold(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	t.Cleanup(func() { e2e.Clean(t, c) })
	q := e2e.Open(t, c, e2e.Timing(quiet))
	other := e2e.Open(t, c, e2e.Timing(quiet))
	var locks atomic.Int64
	stop := bustle(t, q, &locks)

	// A lock and an unlock write three keys at a node: 15 in all, 9 at three
	// nodes.
	require.True(t, e2e.Eventually(func() bool {
		before, n := sets(t, c), locks.Load()
		if !assert.True(t, e2e.Eventually(func() bool { return locks.Load() > n+500 })) {
			return true
		}
		perLock := float64(sets(t, c)-before) / float64(locks.Load()-n)
		t.Logf("%.1f keys written for a lock", perLock)
		return perLock < 12
	}))

	for i := range 10 {
		name := "kept " + strconv.Itoa(i)
		m, elsewhere := mutex.New(q, name), mutex.New(other, name)
		m.Lock()
		require.True(t, e2e.Eventually(func() bool {
			for i := range c.Len() {
				if c.Node(i).Client().Exists(t.Context(), name).Val() == 0 {
					return false
				}
			}
			return true
		}), "%s is brought to all nodes", name)
		require.NoError(t, m.UnlockContext(t.Context()))

		// Released at once it is free at once, also for a client that begins
		// with other nodes.
		require.NoError(t, m.LockContext(t.Context()))
		assert.False(t, elsewhere.TryLock(), "%s is held", name)
		require.NoError(t, m.UnlockContext(t.Context()))
		var err error
		e2e.Eventually(func() bool { // the nodes of a busy machine may answer too late
			err = elsewhere.TryLockContext(t.Context())
			return !errors.Is(err, quorate.ErrNoQuorum)
		})
		require.NoError(t, err, "%s is free", name)
		require.NoError(t, elsewhere.UnlockContext(t.Context()))
	}
	stop()
}

// A node that was never asked for the lock holds no claim of it. So the release
// at one of the three that were asked suffices to know that a majority of five
// is free.
func TestUnlockOfAShortHold(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	q := e2e.Open(t, c, e2e.Timing(quiet), e2e.MinimalFanout())
	var keys [5]int64
	count := func() (n [5]int64) {
		for i := range c.Len() {
			n[i] = c.Node(i).Client().DBSize(t.Context()).Val()
		}
		return n
	}
	seen := false
	for i := 0; i < 500 && !seen; i++ {
		// A lock that was only ever at three nodes has left its fence there,
		// and will be there again.
		m := mutex.New(q, "m "+strconv.Itoa(i))
		keys = count()
		require.NoError(t, m.LockContext(t.Context()))
		require.NoError(t, m.UnlockContext(t.Context()))
		time.Sleep(time.Millisecond)
		var first, rest []int
		for i, n := range count() {
			if n > keys[i] {
				first = append(first, i)
			} else {
				rest = append(rest, i)
			}
		}
		if len(first) != 3 {
			continue
		}

		require.NoError(t, m.LockContext(t.Context()))
		require.NoError(t, c.Node(first[0]).Stop())
		require.NoError(t, c.Node(first[1]).Stop())
		err := m.UnlockContext(t.Context())
		untouched := c.Node(rest[0]).Client().Exists(t.Context(), "quorate:{m "+strconv.Itoa(i)+"}").Val() == 0 &&
			c.Node(rest[1]).Client().Exists(t.Context(), "quorate:{m "+strconv.Itoa(i)+"}").Val() == 0
		if untouched { // else it was not quick enough, and they were asked
			assert.NoError(t, err)
			seen = true
		}
		require.NoError(t, c.Node(first[0]).Cont())
		require.NoError(t, c.Node(first[1]).Cont())
	}
	assert.True(t, seen, "a hold that was only ever at three nodes")
	e2e.Clean(t, c)
}

// Two of five nodes hang. Some of the names begin with them. Each call
// succeeds, and none waits long.
func TestShortHoldWithNodesThatHang(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 5)
	q := e2e.Open(t, c, e2e.Timing(quiet), quorate.WithNodeTimeout(10*time.Second))
	var locks atomic.Int64
	stop := bustle(t, q, &locks)
	for i := range 2 {
		require.NoError(t, c.Node(i).Stop())
	}
	n := locks.Load()
	// A lock that had asked these two waits until the others have been asked.
	require.True(t, e2e.Eventually(func() bool { return locks.Load() > n+64 }))
	n, began := locks.Load(), time.Now()
	require.True(t, e2e.Eventually(func() bool { return locks.Load() > n+200 }))
	assert.Less(t, time.Since(began), 9*time.Second, "before any client can know that they hang")
	for i := range 2 {
		require.NoError(t, c.Node(i).Cont())
	}
	stop()
	e2e.Clean(t, c)
}
