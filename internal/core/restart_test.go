package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A server that comes back with all its data, with fsync=always, too, begins a new
// incarnation: what it did while its file was off, or before an older file was put
// back, is not in the file.
func TestEachRestartIsALossOfData(t *testing.T) {
	t.Parallel()
	assert.True(t, restartIsALoss(t))
}

func restartIsALoss(t *testing.T) bool {
	c := redistest.Start(t, 1, redistest.WithAOF("always"))
	q := idle(t, c)
	n, inc := q.nodes[0], q.client.Voting(0)
	run := n.info().RunID
	require.NoError(t, c.Node(0).Restart())
	require.Equal(t, int64(1), c.Node(0).Client().Exists(t.Context(), "quorate:marker").Val(), "its marker has survived")
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if now := q.client.Voting(0); n.err() == nil && n.info().RunID != run && now != 0 {
			return now != inc
		}
		require.True(t, time.Now().Before(limit), "it has not connected again")
	}
}
