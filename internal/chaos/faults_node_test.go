package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A server that was a replica comes back empty once it was emptied. What it had
// would have it come back as a copy of the other one, which no client counts
// on: the file of the replication, where it keeps its data in memory, or its
// log without the end.
func TestACopyIsEmptiedForGood(t *testing.T) {
	for store, comeBack := range map[string]func(*node) error{
		inMemory: func(nd *node) error { return nd.server.Kill() },
		everysec: func(nd *node) error { return nd.cut(t.Context(), 0) },
	} {
		t.Run(store, func(t *testing.T) {
			opts := []redistest.Option{redistest.WithAOF(store)}
			if store == inMemory {
				opts = nil
			}
			c := redistest.Start(t, 2, opts...)
			nd, of := &node{server: c.Node(0), admin: connectAdmin(c.Node(0).Addr())}, c.Node(1).Client()
			t.Cleanup(func() { _ = nd.admin.Close() })
			require.NoError(t, of.Set(t.Context(), "key", "value", 0).Err())
			require.NoError(t, of.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
			host, port, err := net.SplitHostPort(c.Node(1).Addr())
			require.NoError(t, err)
			require.NoError(t, nd.admin.Do(t.Context(), "REPLICAOF", host, port).Err())
			require.Eventually(t, func() bool {
				text, err := nd.admin.Info(t.Context(), "replication", "persistence").Result()
				return err == nil && strings.Contains(text, "master_link_status:up") && !strings.Contains(text, "aof_rewrite_in_progress:1")
			}, 30*time.Second, 10*time.Millisecond)
			require.NoError(t, nd.admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
			require.NoError(t, nd.empty())
			require.NoError(t, comeBack(nd))
			require.NoError(t, nd.restart())
			var keys int64
			require.NoError(t, insist(func() (err error) { keys, err = nd.admin.DBSize(t.Context()).Result(); return err }))
			assert.Zero(t, keys)
		})
	}
}
