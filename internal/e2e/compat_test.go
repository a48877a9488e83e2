package e2e_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/compat/suite"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// TestCompatibility is what internal/compat runs on one server binary after the
// other. With the server on the PATH the other tests of this package show as
// much, so it is skipped then.
func TestCompatibility(t *testing.T) {
	if os.Getenv(suite.Variable) == "" {
		t.Skip("make compat runs it")
	}
	for name, n := range map[string]int{"alone": 1, "three": 3} {
		steps := everything
		if n == 1 {
			steps = alone
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run(suite.Use, func(t *testing.T) {
				c := redistest.Start(t, n, redistest.WithAOF("everysec"))
				u := &tenant{name: "all"}
				for i := range c.Len() {
					u.servers = append(u.servers, c.Node(i))
				}
				q := e2e.OpenAt(t, c.URLs(), u.options()...)
				assert.NoError(t, u.run(deadline(t), q, steps))
			})
			t.Run(suite.Rights, func(t *testing.T) {
				c := redistest.Start(t, n, redistest.WithAOF("everysec"))
				if err := c.Node(0).Client().Do(t.Context(), "ACL", "WHOAMI").Err(); err != nil &&
					strings.Contains(err.Error(), "unknown command") {
					t.Skip("it has no users")
				}
				u := newTenant(t, c, "documented", slices.Concat(needed, useful))
				q := e2e.OpenAt(t, u.urls("secret"), u.options()...)
				assert.NoError(t, u.run(deadline(t), q, steps))
				if n == 3 {
					fewerRights(t, c)
				}
			})
			t.Run(suite.TLS, func(t *testing.T) {
				g := startTLSOn(t, n)
				q, err := quorate.New(g.clients(t, "secret"), g.options()...)
				require.NoError(t, err)
				defer func() { _ = q.Close() }()
				assert.NoError(t, g.run(deadline(t), q, steps))
			})
			t.Run(suite.Restarts, func(t *testing.T) {
				restarts(t, redistest.Start(t, n, redistest.WithAOF("everysec")))
			})
			t.Run(suite.Full, func(t *testing.T) {
				fullServers(t, redistest.Start(t, n), slow)
				fullServersRecord(t, redistest.Start(t, n), slow)
			})
			t.Run(suite.Cluster, func(t *testing.T) {
				for i := range n {
					node := redistest.Start(t, 1, redistest.WithArgs("--cluster-enabled", "yes")).Node(0)
					if i == 0 {
						serveAllSlots(t, node)
					}
					refusesClusterMode(t, node.URL())
				}
			})
		})
	}
}

// slow is a ttl that a busy machine keeps: the suite judges servers, not the
// machine.
const slow = 3 * time.Second

// restarts has each server killed and started again. A lock is held all the
// while where others vote, and had again where none does. Each server is ready
// again in the end.
func restarts(t *testing.T, c *redistest.Cluster) {
	q := e2e.Open(t, c, e2e.Timing(slow))
	held, m := mutex.New(q, "held"), mutex.New(q, "m")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, held.LockContext(ctx))
	lease := held.Lease()
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Kill())
		require.NoError(t, c.Node(i).Restart())
		require.NoError(t, m.LockContext(ctx))
		require.NoError(t, m.UnlockContext(ctx))
		require.True(t, e2e.Eventually(func() bool {
			r, err := q.Check(ctx)
			return err == nil && r.Ready == c.Len() &&
				!slices.ContainsFunc(r.Nodes, func(n quorate.NodeReport) bool { return len(n.Warnings) > 0 })
		}))
	}
	if c.Len() == 1 {
		assert.Error(t, lease.Context().Err(), "the only server forgot it")
		return
	}
	assert.NoError(t, lease.Context().Err())
	assert.NoError(t, held.UnlockContext(ctx))
	e2e.Clean(t, c)
}
