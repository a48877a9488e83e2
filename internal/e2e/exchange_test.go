package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// rotation is many clients that lock some names in turn, and what they see.
type rotation struct {
	names    [16]tenancy
	holds    atomic.Int64
	overlaps atomic.Int64
	falls    atomic.Int64 // of tokens
	lost     atomic.Int64
	longest  atomic.Int64 // wait
	all      sync.WaitGroup
}

// tenancy is what is known of a name: the hold that began last.
type tenancy struct {
	mu    sync.Mutex
	last  quorate.Lease // nil: it has been released
	token uint64
}

// begin notes that a hold has begun. One that is over shows nothing: its goroutine is late.
func (c *rotation) begin(at *tenancy, l quorate.Lease) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if l.Context().Err() != nil {
		return
	}
	if at.last != nil && at.last.Context().Err() == nil && l.Context().Err() == nil {
		c.overlaps.Add(1)
	}
	if at.token >= l.Token() {
		c.falls.Add(1)
	}
	at.last, at.token = l, l.Token()
}

// end notes that a hold is about to be released.
func (at *tenancy) end(l quorate.Lease) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.last == l {
		at.last = nil
	}
}

// join has a client lock one name again and again until ctx ends.
func (c *rotation) join(ctx context.Context, t *testing.T, q *quorate.Quorum, i int) {
	at := &c.names[i%len(c.names)]
	m := mutex.New(q, fmt.Sprint("name ", i%len(c.names)))
	c.all.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if err := m.LockContext(ctx); err != nil {
				assert.ErrorIs(t, err, context.Canceled)
				return
			}
			wait := int64(time.Since(began))
			for was := c.longest.Load(); wait > was && !c.longest.CompareAndSwap(was, wait); was = c.longest.Load() {
			}
			l := m.Lease()
			c.begin(at, l)
			time.Sleep(5 * time.Millisecond)
			if l.Context().Err() != nil {
				c.lost.Add(1)
			}
			c.holds.Add(1)
			at.end(l)
			m.Unlock()
			time.Sleep(50 * time.Millisecond) // or the machine is busy with nothing else
		}
	})
}

// recorded has the nodes record their set. On a busy machine an attempt may be too slow for the short times of a test.
func recorded(t *testing.T, q *quorate.Quorum) {
	t.Helper()
	var err error
	require.True(t, e2e.Eventually(func() bool {
		err = core.CoreOf(q).BootstrapSet(deadline(t))
		return err == nil
	}), "%v", err)
}

// beat returns the longest time that this process or one of the first servers has not run, until ctx ends.
func beat(ctx context.Context, servers ...*redistest.Server) *atomic.Int64 {
	var longest atomic.Int64
	for _, s := range servers {
		go func() {
			for last := time.Now(); ctx.Err() == nil; last = time.Now() {
				time.Sleep(10 * time.Millisecond)
				s.Client().Ping(ctx)
				if ctx.Err() == nil {
					longest.Store(max(longest.Load(), int64(time.Since(last))))
				}
			}
		}()
	}
	return &longest
}

// still fails the test if one of the locks is not held any more. On a machine that stands still for a lease they are lost.
func still(t *testing.T, kept []*mutex.Mutex, paused *atomic.Int64) {
	t.Helper()
	if d := time.Duration(paused.Load()); d > leaseUnderLoad/10 {
		t.Logf("the machine stood still for %v, so holds may be lost", d)
		return
	}
	lost := 0
	for _, m := range kept {
		if why := context.Cause(m.Lease().Context()); why != nil {
			lost++
			t.Logf("%v (a server was silent for up to %v)", why, time.Duration(paused.Load()))
		}
	}
	require.Zero(t, lost, "holds that were lost, of %d", len(kept))
}

const leaseUnderLoad = 2 * time.Second

// Of three nodes one is replaced, two are added and two removed, while 64 clients lock 16 names and as many hold one
// lock each all the while. No two hold one name, no hold is lost, tokens rise, and all locks are had again.
// It takes five guard times of four seconds.
func TestExchangeUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 6)
	timing := e2e.Timing(leaseUnderLoad)
	urls := c.URLs()
	operator := e2e.OpenAt(t, urls[:3], timing)
	require.NoError(t, core.CoreOf(operator).BootstrapSet(deadline(t)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var users rotation
	paused := beat(ctx, c.Node(1), c.Node(4), c.Node(5)) // these run until the end
	var kept []*mutex.Mutex
	var log e2e.Log // of all clients
	for i := range 64 {
		q := e2e.OpenAt(t, urls[:3], timing, log.Option())
		m := mutex.New(q, fmt.Sprint("kept ", i))
		require.NoError(t, m.LockContext(deadline(t)))
		kept = append(kept, m)
		users.join(ctx, t, q, i)
	}
	change := func(what func(ctx context.Context) error) {
		t.Helper()
		began, had := time.Now(), users.holds.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		require.NoError(t, what(ctx))
		still(t, kept, paused)
		t.Logf("%v, %d holds", time.Since(began).Round(time.Millisecond), users.holds.Load()-had)
	}
	change(func(ctx context.Context) error { return operator.ReplaceNode(ctx, c.Node(2).Addr(), urls[3]) })
	change(func(ctx context.Context) error { return operator.AddNodes(ctx, urls[4], urls[5]) })
	change(func(ctx context.Context) error { return operator.RemoveNodes(ctx, urls[0], urls[3]) })
	for _, i := range []int{0, 2, 3} {
		require.NoError(t, c.Node(i).Kill())
	}
	had := users.holds.Load()
	require.True(t, e2e.Eventually(func() bool { return users.holds.Load() > had+64 }), "the new set does not need the nodes that have left")
	cancel()
	users.all.Wait()
	still(t, kept, paused)
	for _, m := range kept {
		m.Unlock()
	}
	assert.Empty(t, log.Lines("fewer than a majority of the set's nodes can say what it was"), "nodes that enter have lost nothing")
	assert.Zero(t, users.overlaps.Load(), "two clients held one name")
	assert.Zero(t, users.falls.Load(), "a token fell")
	if time.Duration(paused.Load()) <= leaseUnderLoad/10 {
		assert.Zero(t, users.lost.Load(), "a hold was lost")
	}
	t.Logf("%d holds, the longest wait %v", users.holds.Load(), time.Duration(users.longest.Load()))
}
