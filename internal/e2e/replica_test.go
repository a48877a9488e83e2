package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// A node that was another one's replica for a moment has that one's memory, and
// its marker, which says that all is well. It must not vote before its guard
// time, neither for a client that was connected all the time nor for one that
// comes then.
func TestNodeThatWasAReplica(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	for _, client := range []string{"connected all the time", "comes then"} {
		t.Run(client, func(t *testing.T) {
			c := redistest.Start(t, 3)
			e2e.Open(t, c, e2e.Timing(ttl))
			urls := c.URLs()
			// The holder has nodes 0 and 1 only.
			proxies, via := e2e.Proxies(t, urls, proxy.Fault{})
			proxies[2].Hold()
			m := mutex.New(e2e.OpenAt(t, via, e2e.Timing(ttl)), "m")
			q := e2e.OpenAt(t, urls, e2e.Timing(ttl))
			require.NoError(t, m.LockContext(deadline(t)))
			lease := m.Lease()
			if client == "connected all the time" {
				require.True(t, e2e.Eventually(func() bool { // once it is connected
					return errors.Is(mutex.New(q, "m").TryLockContext(deadline(t)), quorate.ErrHeld)
				}))
			}
			host, port, err := net.SplitHostPort(c.Node(2).Addr())
			require.NoError(t, err)
			require.NoError(t, c.Node(2).Client().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
			require.NoError(t, c.Node(1).Client().Do(t.Context(), "REPLICAOF", host, port).Err())
			require.True(t, e2e.Eventually(func() bool {
				return c.Node(1).Client().InfoMap(t.Context(),
					"replication").Item("Replication", "master_link_status") == "up"
			}))
			require.NoError(t, c.Node(1).Client().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
			if client == "comes then" {
				q = e2e.OpenAt(t, urls, e2e.Timing(ttl))
			}
			other := mutex.New(q, "m")
			require.NoError(t, other.LockContext(deadline(t)))
			assert.Error(t, lease.Context().Err(), "the first holder's context has ended before")
			other.Unlock()
		})
	}
}

// A server that was a replica until a moment ago writes to its append-only file
// only when that has been rewritten, whatever appendfsync says: what it
// confirms before is lost in a restart, which brings back a marker that says
// that all is well. So nothing is done with it until then.
func TestNodeThatDoesNotLogYet(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 2, redistest.WithAOF("always"))
	node, other := c.Node(0), c.Node(1)
	pipe := other.Client().Pipeline()
	for i := range 100 {
		pipe.Set(t.Context(), fmt.Sprint("key ", i), "x", 0)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(other.Addr())
	require.NoError(t, err)
	client := node.Client()
	// The rewrite takes 10 s.
	require.NoError(t, client.ConfigSet(t.Context(), "rdb-key-save-delay", "100000").Err())
	require.NoError(t, client.Do(t.Context(), "REPLICAOF", host, port).Err())
	require.True(t, e2e.Eventually(func() bool {
		return client.InfoMap(t.Context(), "replication").Item("Replication", "master_link_status") == "up"
	}))
	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	require.Equal(t, "1", client.InfoMap(t.Context(),
		"persistence").Item("Persistence", "aof_rewrite_in_progress"))

	q := e2e.OpenAt(t, []string{node.URL()}, e2e.Timing(200*time.Millisecond))
	m := mutex.New(q, "m")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	assert.ErrorContains(t, m.LockContext(ctx), "is not writing to its append-only file yet")

	// It is killed before the file is there: nothing has been confirmed that
	// could be lost.
	require.NoError(t, node.Restart())
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
}
