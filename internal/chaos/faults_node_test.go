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

// A server that keeps its data in memory and was a replica comes back empty.
// The file of the replication would have it come back as a copy of the other
// one, which no client counts on.
func TestACopyIsEmptiedForGood(t *testing.T) {
	c := redistest.Start(t, 2)
	nd, of := &node{server: c.Node(0), admin: connectAdmin(c.Node(0).Addr())}, c.Node(1).Client()
	t.Cleanup(func() { _ = nd.admin.Close() })
	require.NoError(t, of.Set(t.Context(), "key", "value", 0).Err())
	require.NoError(t, of.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	host, port, err := net.SplitHostPort(c.Node(1).Addr())
	require.NoError(t, err)
	require.NoError(t, nd.admin.Do(t.Context(), "REPLICAOF", host, port).Err())
	require.Eventually(t, func() bool {
		text, err := nd.admin.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(text, "master_link_status:up")
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, nd.admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	require.NoError(t, nd.empty(t.Context()))
	require.NoError(t, nd.server.Kill())
	require.NoError(t, nd.restart())
	var keys int64
	require.NoError(t, insist(func() (err error) { keys, err = nd.admin.DBSize(t.Context()).Result(); return err }))
	assert.Zero(t, keys)
}
