package core

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A server that comes back with all its data begins a new incarnation, even
// with fsync=always: the file lacks what the server did while the file was off,
// or before an older file was put back.
func TestEachRestartIsALossOfData(t *testing.T) {
	t.Parallel()
	assert.True(t, restartIsALoss(t))
}

func restartIsALoss(t *testing.T) bool {
	c := redistest.Start(t, 1, redistest.WithAOF("always"))
	q := idle(t, c)
	n, inc := q.Nodes.At(0), q.Driver.Client.Voting(0)
	run := n.Info().RunID
	require.NoError(t, c.Node(0).Restart())
	require.Equal(t, int64(1), c.Node(0).Client().Exists(t.Context(), q.Members.MarkerKey()).Val(),
		"its marker has survived")
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if now := q.Driver.Client.Voting(0); n.Err() == nil && n.Info().RunID != run && now != 0 {
			return now != inc
		}
		require.True(t, time.Now().Before(limit), "it has not connected again")
	}
}

// A master that was a replica for a moment begins a new incarnation, though its
// process is the same and its marker names it: it has the memory of a replica,
// which may have lacked what was written last.
func TestARolledBackMasterHasLostData(t *testing.T) {
	t.Parallel()
	assert.True(t, rollbackIsALoss(t))
}

func rollbackIsALoss(t *testing.T) bool {
	a, b := redistest.Start(t, 1), redistest.Start(t, 1)
	q := idle(t, a)
	n, inc, run := q.Nodes.At(0), q.Driver.Client.Voting(0), q.Nodes.At(0).Info().RunID
	replicate(t, a, b)
	require.NoError(t, a.Node(0).Client().Set(t.Context(), "written last", 1, 0).Err())
	replicate(t, b, a)
	require.Zero(t, a.Node(0).Client().Exists(t.Context(), "written last").Val())
	require.NoError(t, a.Node(0).Client().ClientKillByFilter(t.Context(), "SKIPME", "yes").Err(),
		"as a Sentinel does")
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if now := q.Driver.Client.Voting(0); n.Err() == nil && n.Info().Former != "" && now != 0 {
			assert.Equal(t, run, n.Info().RunID)
			return now != inc
		}
		require.True(t, time.Now().Before(limit), "it has not connected again")
	}
}

// replicate gives one server the data of another one, and makes it a master
// again.
func replicate(t *testing.T, from, to *redistest.Cluster) {
	t.Helper()
	host, port, err := net.SplitHostPort(from.Node(0).Addr())
	require.NoError(t, err)
	require.NoError(t, from.Node(0).Client().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	replica := to.Node(0).Client()
	require.NoError(t, replica.Do(t.Context(), "REPLICAOF", host, port).Err())
	require.NoError(t, redistest.AwaitReplica(t.Context(), replica))
	require.NoError(t, replica.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
}
