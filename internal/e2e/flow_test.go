package e2e_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
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
	"github.com/quorate/quorate/mutex"
)

// tally counts what a Quorum tells its observer, and calls up for each node
// that is up.
type tally struct {
	lost, down atomic.Int64
	up         atomic.Pointer[func(addr string)]
}

func (c *tally) Observe(e quorate.Event) {
	switch e.Kind {
	case quorate.EventLost:
		c.lost.Add(1)
	case quorate.EventNodeDown:
		c.down.Add(1)
	case quorate.EventNodeUp:
		if up := c.up.Load(); up != nil {
			(*up)(e.Node)
		}
	}
}

// bulky is a name as long as a name may be. 2,000 requests with such names are
// as many bytes as 25,000 with short ones.
func bulky(i int) string { return strings.Repeat("x", 1000) + strconv.Itoa(i) }

// Each node's connections break once while a process holds many locks, and each
// node is busy for a moment when it is back. The requests by which all claims
// ask again are more than a node can be sent at once. No lock is lost, and no
// connection breaks for their number.
func TestManyLeasesSurviveAReconnect(t *testing.T) {
	const leases = 4000
	c := redistest.Start(t, 3)
	seen := &tally{}
	const ttl = time.Minute // a machine with much else to do may take half of that for all locks
	q := e2e.Open(t, c, e2e.Timing(ttl), quorate.WithNodeTimeout(10*time.Second), quorate.WithObserver(seen))
	late := lateness.Measure(t)
	ms := make([]*mutex.Mutex, leases)
	var all sync.WaitGroup
	for g := range 32 {
		all.Go(func() {
			for i := g; i < leases; i += 32 {
				ms[i] = mutex.New(q, bulky(i))
				assert.NoError(t, ms[i].LockContext(deadline(t)))
			}
		})
	}
	all.Wait()
	up := func(addr string) {
		n := c.Node(slices.Index(c.Addrs(), addr))
		assert.NoError(t, n.Stop())
		all.Go(func() {
			time.Sleep(300 * time.Millisecond) // the node's own trouble, not something to wait for
			assert.NoError(t, n.Cont())
		})
	}
	seen.up.Store(&up)
	earlier := time.Now().Add(ttl - ttl*3/100 - 2*time.Millisecond) // no lease from before lasts longer
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "CLIENT", "KILL", "SKIPME", "yes").Err())
	}
	for _, m := range ms {
		require.True(t, e2e.EventuallyWithin(ttl, func() bool {
			l := m.Lease()
			return l.Context().Err() != nil || l.ValidUntil().After(earlier)
		}))
	}
	all.Wait()
	assert.Zero(t, seen.lost.Load(), "locks lost (the machine was late by up to %v)", late.Most())
	assert.EqualValues(t, c.Len(), seen.down.Load(), "each connection broke once")
	for _, m := range ms {
		m.Unlock()
	}
	e2e.Clean(t, c)
}

// A node stands still for a moment while many goroutines lock, and unlock
// without waiting for it. What they do meanwhile is not more than the node can
// take afterwards.
func TestUnlocksKeepToANodesRoom(t *testing.T) {
	c := redistest.Start(t, 3)
	seen := &tally{}
	q := e2e.Open(t, c, quorate.WithTTL(time.Minute), quorate.WithGuard(3*time.Minute),
		quorate.WithNodeTimeout(10*time.Second), quorate.WithObserver(seen))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var locks atomic.Int64
	for g := range 64 {
		all.Go(func() {
			for m := mutex.New(q, bulky(g)); m.LockContext(ctx) == nil; locks.Add(1) {
				m.Unlock()
			}
		})
	}
	require.True(t, e2e.Eventually(func() bool { return locks.Load() > 100 }))
	require.NoError(t, c.Node(0).Stop())
	n := locks.Load()
	assert.Eventually(t, func() bool { return locks.Load() > n+10_000 }, 3*e2e.Patience,
		time.Millisecond, "the others serve on")
	require.NoError(t, c.Node(0).Cont())
	stop()
	all.Wait()
	e2e.Clean(t, c)
	assert.Zero(t, seen.down.Load(), "connections that broke")
}
