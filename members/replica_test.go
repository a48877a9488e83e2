package members_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
)

// A server that has been promoted forgets the id of its former master once it
// has had no replica for repl-backlog-ttl. It has lost nothing then, so each
// node keeps its incarnation, and its vote, while the set is changed.
func TestNodesThatWereReplicasKeepTheirVotes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	master := c.Node(3)
	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	require.NoError(t, master.Client().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "REPLICAOF", host, port).Err())
		require.NoError(t, redistest.AwaitReplica(t.Context(), c.Node(i).Client()))
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
		require.NotEmpty(t, former(t, c.Node(i)))
	}
	ctx, q := bounded(t), operator(t, c.URLs()[:3], e2e.Timing(long))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(ctx))
	for i := range 3 {
		require.Contains(t, marker(t, c.Node(i))[2], "+", "it names the former master")
		require.NoError(t, c.Node(i).Client().ConfigSet(ctx, "repl-backlog-ttl", "1").Err())
	}
	var before, after [3]string
	for i := range 3 {
		require.True(t, e2e.Eventually(func() bool { return former(t, c.Node(i)) == "" }))
		before[i] = marker(t, c.Node(i))[0]
	}
	guard := get(t, q).Settings.Guard
	require.NoError(t, members.Set(ctx, q, members.Settings{Guard: 3 * long}))
	for i := range 3 {
		after[i] = marker(t, c.Node(i))[0]
	}
	assert.Equal(t, before, after)
	require.NoError(t, m.Lease().Context().Err())
	require.NoError(t, members.Set(ctx, q, members.Settings{Guard: guard}))
	m.Unlock()
}

// former returns the replication id of a server's former master, or "".
func former(t *testing.T, s *redistest.Server) string {
	return strings.Trim(s.Client().InfoMap(t.Context(), "replication").Item("Replication", "master_replid2"), "0")
}

// marker returns the words of a node's marker.
func marker(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	run := s.Client().InfoMap(t.Context(), "server").Item("Server", "run_id")
	keys, err := s.Client().Keys(t.Context(), "*:{}:*").Result()
	require.NoError(t, err)
	for _, k := range keys {
		if words := strings.Fields(s.Client().Get(t.Context(), k).Val()); len(words) > 3 &&
			strings.HasPrefix(words[2], run) {
			return words
		}
	}
	t.Fatalf("no marker in %v", keys)
	return nil
}
