package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// contenders contends for one lock until it is stopped, and fails the test when
// two hold it at a time.
type contenders struct {
	inside atomic.Int32
	holds  atomic.Int64
	lost   atomic.Int64
	last   atomic.Uint64
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func startContenders(t *testing.T, c *redistest.Cluster, timing quorate.Option) *contenders {
	ctx, cancel := context.WithCancel(context.Background())
	cr := &contenders{cancel: cancel}
	for range 3 {
		q := e2e.Open(t, c, timing)
		for range 2 {
			m := mutex.New(q, "m")
			cr.all.Go(func() {
				for ctx.Err() == nil {
					err := m.LockContext(ctx)
					if errors.Is(err, context.Canceled) {
						return
					}
					if !assert.NoError(t, err) {
						return
					}
					assert.EqualValues(t, 1, cr.inside.Add(1), "two holders")
					token := m.Lease().Token()
					assert.Greater(t, token, cr.last.Swap(token))
					cr.holds.Add(1)
					cr.inside.Add(-1)
					if m.UnlockContext(ctx) != nil {
						cr.lost.Add(1)
					}
				}
			})
		}
	}
	t.Cleanup(cr.disperse)
	return cr
}

// more waits until there have been so many more holds.
func (c *contenders) more(t *testing.T, n int64) {
	t.Helper()
	before := c.holds.Load()
	require.True(t, e2e.Eventually(func() bool { return c.holds.Load() >= before+n }))
}

func (c *contenders) disperse() {
	c.cancel()
	c.all.Wait()
}

func TestScriptFlush(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	users := startContenders(t, c, e2e.Timing(long))
	for i := range 30 {
		users.more(t, 20)
		require.NoError(t, c.Node(i%3).Client().ScriptFlush(t.Context()).Err())
		if i%5 == 0 {
			for j := range 3 {
				require.NoError(t, c.Node(j).Client().ScriptFlush(t.Context()).Err())
			}
		}
	}
	users.more(t, 20)
	users.disperse()
	t.Log(users.holds.Load(), "holds,", users.lost.Load(), "lost")
	assert.LessOrEqual(t, users.lost.Load(), int64(6), "at most one each, by the end of the test")
	e2e.Clean(t, c)

	// Also for a client that only asks, and for one that only leaves.
	q := e2e.Open(t, c, e2e.Timing(long))
	m := mutex.New(q, "m")
	m.Lock()
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().ScriptFlush(t.Context()).Err())
	}
	h, err := m.Holder(t.Context())
	require.NoError(t, err)
	assert.Equal(t, m.Lease().Token(), h.Token)
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().ScriptFlush(t.Context()).Err())
	}
	require.NoError(t, m.UnlockContext(t.Context()))
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().ScriptFlush(t.Context()).Err())
	}
	require.NoError(t, q.Bootstrap(t.Context()))
	e2e.Clean(t, c)
}

func TestFlushAll(t *testing.T) {
	t.Parallel()
	const ttl = 400 * time.Millisecond
	c := redistest.Start(t, 3)
	timing := e2e.Timing(ttl)
	users := startContenders(t, c, timing)
	flush := func(nodes ...int) {
		for _, i := range nodes {
			require.NoError(t, c.Node(i).Client().FlushAll(t.Context()).Err())
		}
	}
	// One at a time, with time to repair in between: no caller has to wait.
	for i := range 3 {
		users.more(t, 100)
		flush(i)
		ready(t, c, timing)
	}
	users.more(t, 100)
	flush(0, 1)
	users.more(t, 100)
	flush(0, 1, 2)
	users.more(t, 100)
	users.disperse()
	t.Log(users.holds.Load(), "holds,", users.lost.Load(), "lost")
	e2e.Clean(t, c)
}

// ready waits until every server votes.
func ready(t *testing.T, c *redistest.Cluster, timing quorate.Option) {
	t.Helper()
	q := e2e.OpenAt(t, c.URLs(), timing)
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == c.Len()
	}))
}

// A holder whose servers have all forgotten it learns that at its next renewal,
// and no other client has the lock before its lease would have ended.
func TestFlushAllWhileHeld(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second // a machine may stand still for a second
	c := redistest.Start(t, 3)
	timing := e2e.Timing(ttl)
	m, other := mutex.New(e2e.Open(t, c, timing), "m"), mutex.New(e2e.Open(t, c, timing), "m")
	m.Lock()
	lease := m.Lease()
	require.NoError(t, c.Node(0).Client().FlushAll(t.Context()).Err())
	ready(t, c, timing)
	require.NoError(t, context.Cause(lease.Context()), "one is borne")
	require.True(t, e2e.Eventually(func() bool { return len(leftovers(t, c.Node(0))) > 0 }), "and healed")
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().FlushAll(t.Context()).Err())
	}
	until := lease.ValidUntil()
	other.Lock()
	assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrLost)
	assert.True(t, time.Now().After(until))
	assert.Greater(t, other.Lease().Token(), lease.Token())
	m.Unlock()
	other.Unlock()
	e2e.Clean(t, c)
}

// All servers lose their data while one client is cut off, and another client
// has them record their set again. The one that was cut off uses that set, too.
func TestFlushAllBehindAClientsBack(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(400 * time.Millisecond)
	other := e2e.Open(t, c, timing)
	ways, via := e2e.Proxies(t, c.URLs(), proxy.Fault{})
	m := mutex.New(e2e.OpenAt(t, via, timing), "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	for i, w := range ways {
		w.Hold()
		w.End()
		require.NoError(t, c.Node(i).Client().FlushAll(t.Context()).Err())
	}
	n := mutex.New(other, "n")
	require.NoError(t, n.LockContext(deadline(t)))
	n.Unlock()
	for _, w := range ways {
		w.Release()
	}
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
}

// A node has lost its data, and cannot get its place back while another one is
// down. Claims do not ask it, however often it is judged again.
func TestNoClaimAsksANodeWithoutAVote(t *testing.T) {
	t.Parallel()
	const waiters = 50
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(2*time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer func() { cancel(); all.Wait() }()
	recorded(t, q)
	require.NoError(t, c.Node(2).Kill())
	require.NoError(t, c.Node(0).Client().FlushAll(ctx).Err())
	for i := range waiters {
		all.Go(func() {
			m := mutex.New(q, fmt.Sprint("m", i))
			if m.LockContext(ctx) == nil {
				<-ctx.Done()
				m.Unlock()
			}
		})
	}
	judged := func(times int) int {
		before := c.Node(0).Calls(t, "hello")
		require.True(t, e2e.Eventually(func() bool { return c.Node(0).Calls(t, "hello") >= before+times }))
		return c.Node(0).Calls(t, "evalsha")
	}
	before := judged(2)
	assert.Less(t, judged(5)-before, waiters)
}
