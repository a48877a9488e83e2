package e2e_test

import (
	"context"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// fill uses up what memory a server may have.
func fill(t *testing.T, c *redis.Client) {
	t.Helper()
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorContains(t, c.Set(t.Context(), "one more", "x", 0).Err(), "OOM")
}

// Servers that have reached maxmemory refuse new locks. What is held is renewed, given
// back, handed over and made lighter as ever.
func TestFullServers(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	const ttl = time.Second
	q := e2e.Open(t, c, e2e.Timing(ttl))
	other := e2e.Open(t, c, e2e.Timing(ttl))
	ctx := deadline(t)

	m, waited := mutex.New(q, "mutex"), mutex.New(q, "waited for")
	rw, down := rwmutex.New(q, "rwmutex"), rwmutex.New(q, "downgraded")
	sem := semaphore.NewWeighted(q, "semaphore", 2)
	require.NoError(t, m.LockContext(ctx))
	require.NoError(t, waited.LockContext(ctx))
	require.NoError(t, rw.LockContext(ctx))
	require.NoError(t, down.LockContext(ctx))
	require.NoError(t, sem.Acquire(ctx, 1))
	const many = 100 // go out together
	var crowd []locker
	for i := range many {
		var l locker = mutex.New(q, "one of many "+strconv.Itoa(i))
		if i%2 == 0 {
			l = rwmutex.New(q, "one of many "+strconv.Itoa(i))
		}
		crowd = append(crowd, l)
		require.NoError(t, l.LockContext(ctx))
	}
	next := make(chan error, 1)
	queued := e2e.NewQueued(ctx)
	waiter := mutex.New(other, "waited for")
	go func() { next <- waiter.LockContext(queued) }()
	e2e.Receive(t, queued.In())
	for i := range c.Len() {
		require.True(t, e2e.Eventually(func() bool {
			n, err := c.Node(i).Client().ZCard(ctx, "quorate:{waited for}:q").Result()
			return err == nil && n == 2
		}))
		fill(t, c.Node(i).Client())
	}

	err := mutex.New(q, "new").TryLockContext(ctx)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.ErrorContains(t, err, "OOM")

	oom := refusals(t, c)
	full := time.Now()
	leases := []quorate.Lease{m.Lease(), waited.Lease(), rw.Lease(), down.Lease()}
	for _, l := range leases {
		assert.True(t, e2e.Eventually(func() bool { return l.ValidUntil().After(full.Add(2 * ttl)) }), "renewed")
	}
	assert.NoError(t, down.Downgrade(ctx))
	waited.Unlock()
	err = e2e.Receive(t, next)
	assert.NoError(t, err, "handed over")
	assert.NoError(t, waiter.UnlockContext(ctx))
	assert.NoError(t, m.UnlockContext(ctx))
	assert.NoError(t, rw.UnlockContext(ctx))
	assert.NoError(t, down.RUnlockContext(ctx))
	sem.Release(1)
	var all sync.WaitGroup
	for _, l := range crowd {
		all.Go(func() { assert.NoError(t, l.UnlockContext(ctx)) })
	}
	all.Wait()
	for _, l := range leases {
		assert.NotErrorIs(t, context.Cause(l.Context()), quorate.ErrLost)
	}
	e2e.Clean(t, c)
	assert.Equal(t, oom, refusals(t, c), "commands that the servers refused")
}

type locker interface {
	LockContext(ctx context.Context) error
	UnlockContext(ctx context.Context) error
}

// refusals counts the errors by which the servers have refused commands at maxmemory.
func refusals(t *testing.T, c *redistest.Cluster) (all []string) {
	t.Helper()
	for i := range c.Len() {
		stats, err := c.Node(i).Client().Info(t.Context(), "errorstats").Result()
		require.NoError(t, err)
		all = append(all, regexp.MustCompile(`errorstat_OOM:count=\d+`).FindString(stats))
	}
	return all
}
