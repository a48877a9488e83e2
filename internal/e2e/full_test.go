package e2e_test

import (
	"bufio"
	"context"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// fill uses up what memory a server may have.
func fill(t *testing.T, c *redis.Client) {
	t.Helper()
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorContains(t, c.Set(t.Context(), "one more", "x", 0).Err(), "OOM")
}

// Servers that have reached maxmemory refuse new locks. What is held is
// renewed, given back, handed over and made lighter as ever.
func TestFullServers(t *testing.T) {
	t.Parallel()
	fullServers(t, redistest.Start(t, 3), 4*time.Second) // a machine may stand still for a second
}

func fullServers(t *testing.T, c *redistest.Cluster, ttl time.Duration) {
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
	var lockers []locker
	for i := range many {
		var l locker = mutex.New(q, "one of many "+strconv.Itoa(i))
		if i%2 == 0 {
			l = rwmutex.New(q, "one of many "+strconv.Itoa(i))
		}
		lockers = append(lockers, l)
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
	require.ErrorContains(t, err, "raise that server's maxmemory")

	tried := trials(t, c)
	oom := refusals(t, c)
	full := time.Now()
	leases := []quorate.Lease{m.Lease(), waited.Lease(), rw.Lease(), down.Lease()}
	for _, l := range leases {
		assert.True(t, e2e.Eventually(func() bool { return l.ValidUntil().After(full.Add(5 * ttl / 4)) }),
			"renewed")
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
	for _, l := range lockers {
		all.Go(func() { assert.NoError(t, l.UnlockContext(ctx)) })
	}
	all.Wait()
	for _, l := range leases {
		assert.NotErrorIs(t, context.Cause(l.Context()), quorate.ErrLost)
	}
	e2e.Clean(t, c)
	assert.True(t, e2e.Eventually(func() bool {
		before := tried()
		now := refusals(t, c)
		for i := range now {
			now[i] -= before[i]
		}
		return slices.Equal(oom, now)
	}), "commands that the servers refused: %v before, %v now with the trials %v", &oom, refusals(t, c), tried())
}

// A leader and a run of Once that have begun before the servers were full end
// as ever: what they record goes through, and so does what waits for it.
func TestFullServersRecord(t *testing.T) {
	t.Parallel()
	fullServersRecord(t, redistest.Start(t, 3), 4*time.Second)
}

func fullServersRecord(t *testing.T, c *redistest.Cluster, ttl time.Duration) {
	q := e2e.Open(t, c, e2e.Timing(ttl))
	other := e2e.Open(t, c, e2e.Timing(ttl))
	ctx := deadline(t)
	e := leader.New(q, "leader", leader.WithID("me"))
	require.NoError(t, e.Campaign(ctx, "one"))
	begun, full := make(chan struct{}), make(chan struct{})
	ran := make(chan error, 1)
	go func() {
		ran <- once.New(q, "once").DoContext(ctx, func(context.Context) error { close(begun); <-full; return nil })
	}()
	e2e.Receive(t, begun)
	for i := range c.Len() {
		fill(t, c.Node(i).Client())
	}
	close(full)
	assert.NoError(t, e2e.Receive(t, ran))
	s, err := once.New(other, "once").Status(ctx)
	assert.NoError(t, err)
	assert.Equal(t, once.Done, s.State)

	assert.NoError(t, e.Proclaim(ctx, "two"))
	seen := make(chan string, 100)
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	watching.Go(func() {
		for l, err := range leader.New(other, "leader", leader.WithID("you")).Observe(watched) {
			if err != nil {
				seen <- err.Error()
				continue
			}
			seen <- l.Value
		}
	})
	assert.Equal(t, "two", e2e.Receive(t, seen))
	assert.NoError(t, e.Resign(ctx))
	assert.Contains(t, e2e.Receive(t, seen), leader.ErrNoLeader.Error())
	// Only how soon the test is over depends on it.
	ended, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	err = once.New(q, "new").DoContext(ended, func(context.Context) error { return nil })
	assert.ErrorContains(t, err, "maxmemory")
}

// A client connects to a full server, also where it has news: here a run that
// the marker does not name.
func TestFullServerIsConnectedTo(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(time.Second))
	ctx := deadline(t)
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(ctx))
	restarted := c.Node(2).Client()
	marker := e2e.MarkerKey(ctx, c.Node(2))
	text, err := restarted.Get(ctx, marker).Result()
	require.NoError(t, err)
	words := strings.Split(text, " ")
	words[2] = "anotherrun"
	require.NoError(t, restarted.Set(ctx, marker, strings.Join(words, " "), 0).Err())
	for i := range c.Len() {
		fill(t, c.Node(i).Client())
	}
	other := e2e.OpenAt(t, c.URLs(), e2e.Timing(time.Second))
	var r quorate.Report
	// It learns of the set by one node, and connects to the others again.
	require.True(t, e2e.Eventually(func() bool {
		r, err = other.Check(ctx)
		return !slices.ContainsFunc(r.Nodes,
			func(n quorate.NodeReport) bool { return n.Err != nil || n.Refuses == nil && n.Recovering == 0 })
	}), "%v %v", &err, &r)
	assert.NotEmpty(t, r.Nodes[2].Recovering, "it does not vote before its guard time ends")
	assert.NoError(t, m.UnlockContext(ctx))
	e2e.Clean(t, c)
}

type locker interface {
	LockContext(ctx context.Context) error
	UnlockContext(ctx context.Context) error
}

// refusals counts the errors by which the servers have refused commands at
// maxmemory.
func refusals(t *testing.T, c *redistest.Cluster) (all []int) {
	t.Helper()
	for i := range c.Len() {
		stats, err := c.Node(i).Client().Info(t.Context(), "errorstats").Result()
		require.NoError(t, err)
		n, err := strconv.Atoi(regexp.MustCompile(`errorstat_OOM:count=(\d+)`).FindStringSubmatch(stats)[1])
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

// trials counts, from now on, the writes by which clients find out whether the
// servers take new locks.
func trials(t *testing.T, c *redistest.Cluster) func() []int {
	t.Helper()
	var mu sync.Mutex
	all := make([]int, c.Len())
	for i := range c.Len() {
		conn, err := net.Dial("tcp", c.Node(i).Addr())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = conn.Write([]byte("MONITOR\r\n"))
		require.NoError(t, err)
		lines := bufio.NewScanner(conn)
		require.True(t, lines.Scan(), "+OK")
		go func() {
			for lines.Scan() {
				if strings.Contains(lines.Text(), `"EVALSHA"`) && strings.Contains(lines.Text(), `:{}:try"`) {
					mu.Lock()
					all[i]++
					mu.Unlock()
				}
			}
		}()
	}
	return func() []int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}
