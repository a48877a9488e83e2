package e2e_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A key that another client has left at one node bars every claim there, and
// harms nothing else: the two other nodes serve each of the contending claims.
func TestStrayKey(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(30 * time.Second) // so that neither a renewal nor giving up helps a claim
	q := e2e.Open(t, c, timing)
	require.NoError(t, c.Node(0).Client().Set(t.Context(), "m", "another's", 0).Err())
	ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
	defer cancel()
	var all sync.WaitGroup
	for i := range 3 {
		if i > 0 {
			q = e2e.OpenAt(t, c.URLs(), timing)
		}
		m := mutex.New(q, "m")
		all.Go(func() {
			for range 50 {
				if !assert.NoError(t, m.LockContext(ctx)) {
					return
				}
				assert.NoError(t, m.UnlockContext(ctx))
			}
		})
	}
	all.Wait()
	assert.Equal(t, "another's", c.Node(0).Client().Get(t.Context(), "m").Val())
}

// A replica does not vote: Check does not count it.
func TestCheckOfReplicas(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(time.Second))
	host, port, err := net.SplitHostPort(c.Node(2).Addr())
	require.NoError(t, err)
	for ready := 3; ready > 0; ready-- {
		r, err := q.Check(t.Context())
		require.Equal(t, ready, r.Ready, "%+v", r)
		if ready == 1 {
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			require.ErrorContains(t, err, c.Node(0).Addr()+" is a replica")
			require.NotEmpty(t, r.Nodes[0].Warnings)
			break
		}
		require.NoError(t, err)
		require.NoError(t, c.Node(3-ready).Client().Do(t.Context(), "REPLICAOF", host, port).Err())
	}
}
