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
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
)

// rotation is many clients that lock some names in turn, and what they see.
type rotation struct {
	names    [16]tenancy
	holds    atomic.Int64
	overlaps atomic.Int64
	falls    atomic.Int64 // of tokens
	all      sync.WaitGroup

	mu      sync.Mutex
	lost    []time.Time // when their leases ended
	waits   []wait      // those of more than a quarter of a lease
	longest time.Duration
}

// wait is a time in which a client waited.
type wait struct{ from, to time.Time }

// tenancy is what is known of a name: the hold that began last.
type tenancy struct {
	mu    sync.Mutex
	last  quorate.Lease // nil: it has been released
	token uint64
}

// begin notes that a hold has begun. One that is over shows nothing: its
// goroutine is late.
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

// waited notes how long a client has waited.
func (c *rotation) waited(s wait) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, s.to.Sub(s.from))
	if s.to.Sub(s.from) > rotationLease/4 {
		c.waits = append(c.waits, s)
	}
}

// join has a client lock one name again and again until ctx ends.
func (c *rotation) join(ctx context.Context, t *testing.T, q *quorate.Quorum, i int) {
	at := &c.names[i%len(c.names)]
	m := mutex.New(q, fmt.Sprint("name ", i%len(c.names)))
	c.all.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			err := m.LockContext(ctx)
			c.waited(wait{began, time.Now()})
			if err != nil {
				assert.ErrorIs(t, err, context.Canceled)
				return
			}
			l := m.Lease()
			c.begin(at, l)
			time.Sleep(5 * time.Millisecond)
			if l.Context().Err() != nil {
				c.mu.Lock()
				c.lost = append(c.lost, l.ValidUntil())
				c.mu.Unlock()
			}
			c.holds.Add(1)
			at.end(l)
			m.Unlock()
			time.Sleep(50 * time.Millisecond) // or the machine is busy with nothing else
		}
	})
}

// judge fails the test for what must not happen.
func (c *rotation) judge(t *testing.T, late *lateness.Lateness) {
	t.Helper()
	assert.Zero(t, c.overlaps.Load(), "two clients held one name")
	assert.Zero(t, c.falls.Load(), "a token fell")
	for _, end := range c.lost {
		excused(t, late, end)
	}
	for _, s := range c.waits {
		still := late.Within(s.from, s.to)
		assert.LessOrEqual(t, s.to.Sub(s.from), rotationLease+still,
			"a client waited for longer than a lease (the machine stood still for %v)", still)
	}
	t.Logf("%d holds, %d lost, the longest wait %v, the machine was late by up to %v", c.holds.Load(),
		len(c.lost), c.longest, late.Most())
}

// mustLast fails the test if a hold is lost.
func mustLast(t *testing.T, late *lateness.Lateness, l quorate.Lease) {
	t.Helper()
	if l.Context().Err() != nil {
		t.Logf("%s: %v", t.Name(), context.Cause(l.Context()))
		excused(t, late, l.ValidUntil())
	}
}

// excused fails the test for a hold whose lease ended at that moment, unless
// the machine stood still for so much of the lease that two renewals of it may
// have failed: renewals begin a third of a lease apart.
func excused(t *testing.T, late *lateness.Lateness, end time.Time) {
	t.Helper()
	assert.Greater(t, late.Within(end.Add(-rotationLease), end), rotationLease/3,
		"a hold is lost, %v ago", time.Since(end))
}

// recorded has the nodes record their set. On a busy machine an attempt may be
// too slow for the short times of a test.
func recorded(t *testing.T, q *quorate.Quorum) {
	t.Helper()
	var err error
	require.True(t, e2e.Eventually(func() bool {
		err = q.Bootstrap(deadline(t))
		return err == nil
	}), "%v", err)
}

// rotationLease outlasts a machine that stands still for two seconds.
const rotationLease = 3500 * time.Millisecond

// While 64 clients lock 16 names and as many hold one lock each all the while,
// nodes of a set of three are exchanged. No two hold one name, no hold is lost,
// tokens rise, no client waits for longer than a lease, and all locks are had
// again. Each exchange takes two guard times of seven seconds.
func TestExchangeUnderLoad(t *testing.T) {
	t.Parallel()
	t.Run("a node is replaced", func(t *testing.T) {
		t.Parallel()
		c := redistest.Start(t, 4)
		exchangeUnderLoad(t, c, []int{1, 3, 0}, []int{2},
			func(ctx context.Context, q *quorate.Quorum) error {
				return members.Replace(ctx, q, c.Node(2).Addr(), c.URLs()[3])
			})
	})
	t.Run("two are added and two removed", func(t *testing.T) {
		t.Parallel()
		c := redistest.Start(t, 5)
		urls := c.URLs()
		exchangeUnderLoad(t, c, []int{1, 3, 4}, []int{0, 2},
			func(ctx context.Context, q *quorate.Quorum) error { return members.Add(ctx, q, urls[3], urls[4]) },
			func(ctx context.Context, q *quorate.Quorum) error { return members.Remove(ctx, q, urls[0], urls[2]) })
	})
}

// exchangeUnderLoad has an operator change the set of the first three servers.
// Some servers stay or come, and the others leave.
func exchangeUnderLoad(t *testing.T, c *redistest.Cluster, stay, leave []int,
	changes ...func(context.Context, *quorate.Quorum) error) {
	t.Helper()
	urls, timing := c.URLs()[:3], e2e.Timing(rotationLease)
	operator := e2e.OpenAt(t, urls, timing)
	recorded(t, operator)
	late := lateness.Measure(t)
	for _, i := range stay {
		late.Watch(t, func(ctx context.Context) error { return c.Node(i).Client().Ping(ctx).Err() })
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var users rotation
	var kept []*mutex.Mutex
	var log e2e.Log // of all clients
	for i := range 64 {
		q := e2e.OpenAt(t, urls, timing, log.Option())
		m := mutex.New(q, fmt.Sprint("kept ", i))
		require.NoError(t, m.LockContext(deadline(t)))
		kept = append(kept, m)
		users.join(ctx, t, q, i)
	}
	for _, change := range changes {
		began, had := time.Now(), users.holds.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		require.NoError(t, change(ctx, operator))
		t.Logf("%v, %d holds", time.Since(began).Round(time.Millisecond), users.holds.Load()-had)
	}
	for _, i := range leave {
		require.NoError(t, c.Node(i).Kill())
	}
	had := users.holds.Load()
	require.True(t, e2e.Eventually(func() bool { return users.holds.Load() > had+64 }),
		"the new set does not need the nodes that have left")
	cancel()
	users.all.Wait()
	for _, m := range kept {
		mustLast(t, late, m.Lease())
		m.Unlock()
	}
	users.judge(t, late)
	for _, text := range []string{"lost its data, and", "lost its data while"} {
		assert.Empty(t, log.Lines(text), "nodes that enter have lost nothing")
	}
}
