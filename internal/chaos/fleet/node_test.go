package fleet

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server that was a replica comes back empty once it was emptied. What it had
// would have it come back as a copy of the other one, which no client counts
// on: the file of the replication, where it keeps its data in memory, or its
// log without the end.
func TestACopyIsEmptiedForGood(t *testing.T) {
	for store, comeBack := range map[string]func(*Node) error{
		InMemory: func(nd *Node) error { return nd.Server.Kill() },
		Everysec: func(nd *Node) error { return nd.Cut(t.Context(), 0) },
	} {
		t.Run(store, func(t *testing.T) {
			opts := []redistest.Option{redistest.WithAOF(store)}
			if store == InMemory {
				opts = nil
			}
			c := redistest.Start(t, 2, opts...)
			nd, of := &Node{Server: c.Node(0), Admin: connectAdmin(c.Node(0).Addr())}, c.Node(1).Client()
			t.Cleanup(func() { _ = nd.Admin.Close() })
			require.NoError(t, of.Set(t.Context(), "key", "value", 0).Err())
			require.NoError(t, of.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
			host, port, err := net.SplitHostPort(c.Node(1).Addr())
			require.NoError(t, err)
			require.NoError(t, nd.Admin.Do(t.Context(), "REPLICAOF", host, port).Err())
			require.Eventually(t, func() bool {
				text, err := nd.Admin.Info(t.Context(), "replication", "persistence").Result()
				return err == nil && strings.Contains(text, "master_link_status:up") &&
					!strings.Contains(text, "aof_rewrite_in_progress:1")
			}, 30*time.Second, 10*time.Millisecond)
			require.NoError(t, nd.Admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
			require.NoError(t, nd.Empty())
			require.NoError(t, comeBack(nd))
			require.NoError(t, nd.Restart())
			var keys int64
			require.NoError(t,
				Insist(func() (err error) { keys, err = nd.Admin.DBSize(t.Context()).Result(); return err }))
			assert.Zero(t, keys)
		})
	}
}
