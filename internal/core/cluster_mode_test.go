package core

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// No call waits for a node in cluster mode, as no waiting changes the mode.
func TestClusterModeIsForGood(t *testing.T) {
	t.Parallel()
	assert.True(t, clusterModeIsForGood(t))
}

func clusterModeIsForGood(t *testing.T) bool {
	node := redistest.Start(t, 1, redistest.WithArgs("--cluster-enabled", "yes")).Node(0)
	q, err := New([]redis.UniversalClient{node.Client()}, setup.Defaults())
	require.NoError(t, err)
	defer func() { assert.NoError(t, q.Close(t.Context())) }()
	n := q.Node(nodeset.Seed)
	n.Tried(t.Context())
	err = n.Err()
	return err != nil && fault.Permanent(err)
}
