package e2e_test

import (
	"bytes"
	"strings"
	"sync"
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

// Bootstrap says that nodes are brand-new, and each of them votes at once, even
// if connections are lost in the middle: a node that has accepted the set, and
// whose commit was lost, gets it with the next connection. The set may be found
// meanwhile, so that the connection which has the commit is not needed any
// more.
func TestBootstrapWhileConnectionsAreLost(t *testing.T) {
	t.Parallel()
	for range 12 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 3)
			var log e2e.Log
			ways, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{Delay: time.Millisecond})
			q := e2e.OpenAt(t, urls, e2e.Timing(long), quorate.WithNodeTimeout(200*time.Millisecond), log.Option())
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for k := range 30 { // on a busy machine no handshake may end in between
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(5+k*7%30) * time.Millisecond):
						ways[k%3].Reset()
					}
				}
			}()
			calls := 0
			ok := e2e.Eventually(func() bool { calls++; return q.Bootstrap(t.Context()) == nil })
			close(stop)
			<-stopped
			require.True(t, ok)
			if calls == 1 {
				assert.Empty(t, log.Lines("already recorded"), "it is this call that has recorded it")
			}
			for i := range c.Len() {
				require.True(t, e2e.Eventually(func() bool { return e2e.Marker(t.Context(), c.Node(i)) != "" }))
				fields := strings.Fields(e2e.Marker(t.Context(), c.Node(i)))
				require.Equal(t, "0", fields[1], "node %d has begun a guard time", i)
			}
		})
	}
}

// The replicas of a service call Bootstrap as they start, all at once. Each
// proposes the set that another has begun to record. A majority of the nodes
// votes at once all the same.
func TestReplicasBootstrapAtOnce(t *testing.T) {
	t.Parallel()
	for range 30 {
		c := redistest.Start(t, 3)
		var replicas sync.WaitGroup
		for range 8 {
			q := e2e.OpenAt(t, c.URLs(), e2e.Guarded(4*time.Second, time.Hour))
			replicas.Go(func() { assert.NoError(t, q.Bootstrap(deadline(t))) })
		}
		replicas.Wait()
		votes := 0
		for i := range c.Len() {
			if strings.Fields(e2e.Marker(t.Context(), c.Node(i)))[1] == "0" {
				votes++
			}
		}
		require.GreaterOrEqual(t, votes, 2)
	}
}

// A node comes back with a file from before it was given its commit by another
// client, and has voted in between. A Bootstrap that still waits for what
// another node has answered must not declare it brand-new: a second holder
// would have its vote.
func TestBootstrapThatWaitsWhileANodeForgets(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithAOF("always"))
	timing := e2e.Timing(40 * time.Second)
	far, via := e2e.Proxies(t, c.URLs()[:1], proxy.Fault{})
	far[0].Impose(proxy.Up, proxy.Any, proxy.Fault{Observe: func(data []byte) {
		if bytes.Contains(data, []byte("\r\naccept\r\n")) {
			far[0].Impose(proxy.Down, proxy.Any, proxy.Fault{Hold: true})
		}
	}})
	q := e2e.OpenAt(t, append(via, c.URLs()[1:]...), timing, quorate.WithNodeTimeout(10*time.Second))
	done := make(chan error, 1)
	go func() { done <- q.Bootstrap(deadline(t)) }()
	node := c.Node(2)
	accepted := func(s *redistest.Server) bool {
		return strings.Contains(s.Client().Get(t.Context(), "quorate:{}:set").Val(), " p ")
	}
	require.True(t,
		e2e.Eventually(func() bool { return accepted(c.Node(0)) && accepted(c.Node(1)) && accepted(node) }))
	require.NoError(t, node.Client().ConfigSet(t.Context(), "appendonly", "no").Err())

	ways, via := e2e.Proxies(t, c.URLs(), proxy.Fault{})
	other := e2e.OpenAt(t, via, timing)
	require.NoError(t, other.Bootstrap(deadline(t)))
	ways[0].Hold()
	m := mutex.New(other, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	ways[2].Hold()
	require.NoError(t, node.Restart())
	require.True(t, e2e.Eventually(func() bool { return node.Calls(t, "exists") > 0 })) // q has met it
	far[0].Impose(proxy.Both, proxy.Any, proxy.Fault{})
	require.NoError(t, <-done)
	assert.Error(t, mutex.New(q, "m").TryLockContext(deadline(t)))
	assert.NoError(t, m.Lease().Context().Err())
}

// All nodes are connected and blank, and one cannot write. Bootstrap says which
// one, and why, and does not advise to call Bootstrap.
func TestBootstrapAtANodeThatCannotWrite(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	require.NoError(t, c.Node(1).Client().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	q := e2e.OpenAt(t, c.URLs(), e2e.Timing(2*time.Second), quorate.WithNodeTimeout(500*time.Millisecond))
	err := q.Bootstrap(t.Context())
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, c.Node(1).Addr()+" NOREPLICAS")
	assert.ErrorContains(t, err, "3 of 3 nodes connected, 0 can vote, 3 needed")
	assert.NotContains(t, err.Error(), c.Node(0).Addr())
	assert.NotContains(t, err.Error(), "Bootstrap")
}
