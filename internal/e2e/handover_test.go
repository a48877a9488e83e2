package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// queued waits until so many wait behind the holder.
func queued(t *testing.T, m *mutex.Mutex, n int) {
	t.Helper()
	said := "nothing"
	ok := e2e.Eventually(func() bool {
		h, err := m.Holder(t.Context())
		said = fmt.Sprintf("%+v, %v", h, err)
		return err == nil && h.Waiters == n
	})
	require.True(t, ok, "not %d waiters: %s", n, said)
}

// The next process has the lock by a push: long before it would have asked
// again.
func TestHandOverBetweenProcesses(t *testing.T) {
	t.Parallel()
	const ttl, rounds = 8 * time.Second, 50
	late := lateness.Measure(t)
	for _, n := range []int{3, 5} {
		c := redistest.Start(t, n)
		q := e2e.Open(t, c, e2e.Timing(ttl))
		m := mutex.New(q, "m")
		w := startWorker(t, c, terms{Name: "m", TTL: ttl, Guard: 2*ttl + 20*time.Millisecond})
		var all []time.Duration
		var last uint64
		for range rounds {
			m.Lock()
			token := m.Lease().Token()
			assert.Greater(t, token, last)
			w.tell(t, "lock")
			queued(t, m, 1)
			unlocked := time.Now().Round(0) // the wall clock is what two processes share
			m.Unlock()
			next, at := w.held(t)
			all = append(all, at.Sub(unlocked))
			require.Less(t, at.Sub(unlocked), ttl/3/2+late.Allow(1), "not by a beat")
			assert.Greater(t, next, token)
			last = next
			w.tell(t, "unlock")
			require.Equal(t, "unlocked", w.answer(t))
		}
		slices.Sort(all)
		report, err := q.Check(t.Context())
		require.NoError(t, err)
		var trips []time.Duration
		for range 100 {
			for i := range n {
				began := time.Now()
				require.NoError(t, c.Node(i).Client().Ping(t.Context()).Err())
				trips = append(trips, time.Since(began))
			}
		}
		slices.Sort(trips)
		t.Logf("%d servers: hand-over median %v, 90%% %v, max %v; a round trip: median %v (Check: %v)",
			n, all[rounds/2], all[rounds*9/10], all[rounds-1], trips[len(trips)/2], report.Nodes[0].RoundTrip)
		assert.Less(t, all[rounds/2], ttl/3/20+late.Allow(4))
	}
}

// Where round trips take long they are what counts: the leave to a majority and
// the push from there make one.
func TestHandOverTakesNoMoreThanTwoRoundTrips(t *testing.T) {
	t.Parallel()
	const ttl, trip, rounds = 8 * time.Second, 80 * time.Millisecond, 11
	late := lateness.Measure(t)
	c := redistest.Start(t, 3)
	_, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{Delay: trip / 2})
	a := mutex.New(e2e.Open(t, c, e2e.Timing(ttl)), "m")
	var m [2]*mutex.Mutex
	for i := range m {
		m[i] = mutex.New(e2e.OpenAt(t, urls, e2e.Timing(ttl)), "m")
		require.NoError(t, m[i].LockContext(deadline(t))) // connected
		m[i].Unlock()
	}
	m[0].Lock()
	var all []time.Duration
	for i := range rounds {
		holder, next := m[i%2], m[(i+1)%2]
		got := make(chan time.Time, 1)
		go func() {
			next.Lock()
			got <- time.Now()
		}()
		queued(t, a, 1)
		// It knows so, too: until it has heard of its place no push can give it
		// its turn.
		require.NoError(t, holder.Extend(t.Context()))
		unlocked := time.Now()
		holder.Unlock()
		at := e2e.Receive(t, got)
		all = append(all, at.Sub(unlocked))
		require.Less(t, at.Sub(unlocked), ttl/3/2+late.Allow(1), "not by a beat")
	}
	m[rounds%2].Unlock()
	slices.Sort(all)
	t.Logf("a round trip takes %v; hand-over median %v, max %v", trip, all[rounds/2], all[rounds-1])
	assert.GreaterOrEqual(t, all[0], trip)
	assert.Less(t, all[rounds/2], 2*trip+late.Allow(6)) // each way passes a proxy, the node and both clients
}

// A waiter behind a process that has been killed has the lock when that lease
// ends.
func TestHolderKilled(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	late := lateness.Measure(t)
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(ttl))
	m := mutex.New(q, "m")
	for i := range time.Duration(5) {
		w := startWorker(t, c, terms{Name: "m", TTL: ttl, Guard: 2*ttl + 20*time.Millisecond})
		w.tell(t, "lock")
		token, at := w.held(t)
		waiting := make(chan time.Time, 1)
		go func() {
			m.Lock()
			waiting <- time.Now()
		}()
		queued(t, mutex.New(q, "m"), 1)
		// It has been renewed at least once, and is killed at any time between
		// two renewals.
		require.True(t, e2e.Eventually(func() bool { return time.Since(at) > ttl/2+i*ttl/15 }))
		require.NoError(t, w.Signal(os.Kill))
		killed := time.Now() // no renewal can come later
		w.kill(t)
		got := e2e.Receive(t, waiting)
		after := got.Sub(killed)
		t.Logf("killed, and the next has it after %v (ttl %v)", after, ttl)
		assert.LessOrEqual(t, after, ttl+100*time.Millisecond+late.Allow(12))
		assert.Greater(t, m.Lease().Token(), token)
		m.Unlock()
	}
	buried(t, c, m)
}

// A waiter that is killed in the queue delays the others by one lease, at most.
func TestWaiterKilled(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	late := lateness.Measure(t)
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(ttl))
	m, next := mutex.New(q, "m"), mutex.New(q, "m")
	m.Lock()
	w := startWorker(t, c, terms{Name: "m", TTL: ttl, Guard: 2*ttl + 20*time.Millisecond})
	w.tell(t, "lock")
	queued(t, m, 1)
	waiting := make(chan time.Time, 1)
	go func() {
		next.Lock()
		waiting <- time.Now()
	}()
	queued(t, m, 2)
	w.kill(t)
	killed := time.Now()
	m.Unlock()
	got := e2e.Receive(t, waiting)
	t.Logf("the one behind it has it after %v (ttl %v)", got.Sub(killed), ttl)
	assert.LessOrEqual(t, got.Sub(killed), ttl+100*time.Millisecond+late.Allow(12))
	next.Unlock()
	buried(t, c, m)
}

// buried sees that nothing remains of the processes that died holding or
// waiting for m: a server drops such a claim at the first request after its
// lease has ended.
func buried(t *testing.T, c *redistest.Cluster, m *mutex.Mutex) {
	t.Helper()
	require.True(t, e2e.Eventually(func() bool {
		require.NoError(t, m.LockContext(t.Context()))
		require.NoError(t, m.UnlockContext(t.Context()))
		left := 0
		for i := range c.Len() {
			left += len(leftovers(t, c.Node(i)))
		}
		return left == 0
	}))
}
