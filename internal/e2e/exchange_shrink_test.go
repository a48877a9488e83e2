package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
)

const leaseUnderLoad = 2 * time.Second

// Three nodes become one, and a later waiter reached that one first: the holder
// is there behind it. The hold goes on, also after a further lease and without
// the nodes that left, which are stopped at once. An idle client goes on, too.
// The waiter holds when the hold ends, with a higher token.
func TestHolderGetsItsPlaceAsTheSetShrinks(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(leaseUnderLoad)
	operator := e2e.OpenAt(t, c.URLs(), timing)
	recorded(t, operator)
	proxies, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{})
	holder, waiter := e2e.OpenAt(t, urls, timing), e2e.OpenAt(t, c.URLs(), timing)
	idle := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "other")
	late := lateness.Measure(t)

	proxies[0].Hold()
	m := mutex.New(holder, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	next, waited := mutex.New(waiter, "m"), make(chan error, 1)
	ctx := deadline(t)
	go func() { waited <- next.LockContext(ctx) }()
	require.True(t, e2e.Eventually(func() bool {
		n, err := c.Node(0).Client().Exists(ctx, "quorate:{m}").Result()
		return err == nil && n == 1
	}), "the waiter is at the node that stays")
	proxies[0].Release()

	require.NoError(t, members.Remove(ctx, operator, c.Node(1).Addr(), c.Node(2).Addr()))
	// Clients have followed when Remove returns: the servers may be stopped.
	require.NoError(t, c.Node(1).Kill())
	require.NoError(t, c.Node(2).Kill())
	select {
	case <-time.After(leaseUnderLoad + leaseUnderLoad/2):
	case err := <-waited:
		t.Fatalf("the waiter holds, or gives up, while the lock is held: %v", err)
	case <-m.Lease().Context().Done():
		if late.Most() > leaseUnderLoad/10 {
			t.Logf("the machine stood still for %v, so the hold may be lost", late.Most())
			return
		}
	}
	require.NoError(t, m.Lease().Context().Err())
	token := m.Lease().Token()
	m.Unlock()
	require.NoError(t, <-waited)
	assert.Greater(t, next.Lease().Token(), token)
	next.Unlock()
	require.NoError(t, idle.LockContext(deadline(t)))
	idle.Unlock()
}
