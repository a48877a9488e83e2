package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
)

const leaseUnderLoad = 2 * time.Second

// Three nodes become one, and a later waiter reached that one first: the holder
// is there behind it. The hold ends before that of the waiter begins, which has
// a higher token. An idle client goes on. The nodes that left are stopped at
// once.
func TestAHoldThatEndsAsTheSetShrinks(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(leaseUnderLoad)
	operator := e2e.OpenAt(t, c.URLs(), timing)
	recorded(t, operator)
	proxies, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{})
	holder, waiter := e2e.OpenAt(t, urls, timing), e2e.OpenAt(t, c.URLs(), timing)
	idle := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "other")

	proxies[0].Hold()
	m := mutex.New(holder, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	next, held, waited := mutex.New(waiter, "m"), m.Lease(), make(chan error, 1)
	ctx := deadline(t)
	go func() {
		err := next.LockContext(ctx)
		if err == nil && held.Context().Err() == nil {
			err = errors.New("the waiter holds beside the holder")
		}
		waited <- err
	}()
	require.True(t, e2e.Eventually(func() bool {
		n, err := c.Node(0).Client().Exists(ctx, "quorate:{m}").Result()
		return err == nil && n == 1
	}), "the waiter is at the node that stays")
	proxies[0].Release()

	require.NoError(t, members.Remove(ctx, operator, c.Node(1).Addr(), c.Node(2).Addr()))
	// Clients have followed when Remove returns: the servers may be stopped.
	require.NoError(t, c.Node(1).Kill())
	require.NoError(t, c.Node(2).Kill())
	require.NoError(t, <-waited)
	require.ErrorIs(t, held.Context().Err(), context.Canceled)
	assert.Greater(t, next.Lease().Token(), held.Token())
	next.Unlock()
	require.NoError(t, idle.LockContext(deadline(t)))
	idle.Unlock()
}

// A client is without a quorum while a node of its list, which had left the
// set, becomes a member again. The client asks that node again and again, and so
// follows the set.
func TestANodeOfTheListThatReturnsToTheSet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	timing := e2e.Timing(leaseUnderLoad)
	operator := e2e.OpenAt(t, c.URLs()[:3], timing)
	recorded(t, operator)
	require.NoError(t, members.Replace(deadline(t), operator, c.Node(2).Addr(), c.Node(3).Addr()))

	proxies, urls := e2e.Proxies(t, c.URLs()[:3], proxy.Fault{})
	m := mutex.New(e2e.OpenAt(t, urls, timing), "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	before := proxies[2].Sent()
	proxies[0].Hold()
	proxies[0].Reset()
	require.NoError(t, c.Node(3).Kill())
	require.True(t, e2e.Eventually(func() bool { return proxies[2].Sent() > before }), "it asks its list")

	require.NoError(t, members.Replace(deadline(t), operator, c.Node(3).Addr(), c.Node(2).Addr()))
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
}
