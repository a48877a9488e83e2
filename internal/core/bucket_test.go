package core

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A listing of the names in a bucket fails while the slot moves: a part of them
// is at another server.
func TestListingNeedsTheWholeSlot(t *testing.T) {
	t.Parallel()
	assert.False(t, listsHalfASlot(t))
}

func listsHalfASlot(t *testing.T) bool {
	s := redistest.StartSharded(t, 2, false)
	client := s.Client()
	defer client.Close()
	q, err := New([]redis.UniversalClient{client}, patient())
	require.NoError(t, err)
	defer func() { assert.NoError(t, q.Close(context.Background())) }()
	const name = "a"
	b := q.For(name)
	require.NoError(t, b.Bootstrap(within(t)))
	connected(t, b)
	key := script.NewKeys(b.Set.Prefix, name).Record()
	require.NoError(t, client.Set(t.Context(), key, "x", 0).Err())
	names, _, err := asker{&b.repairs, 0}.List(0, "0")
	require.NoError(t, err)
	require.Equal(t, []string{name + "}"}, names)

	slot, err := s.Slot(t.Context(), key)
	require.NoError(t, err)
	from, err := s.Master(t.Context(), slot)
	require.NoError(t, err)
	to := s.Node(0)
	if to == from {
		to = s.Node(1)
	}
	move, err := s.BeginMove(t.Context(), slot, to)
	require.NoError(t, err)
	require.NoError(t, move.Key(t.Context(), key))
	_, _, err = asker{&b.repairs, 0}.List(0, "0")
	return err == nil
}

// Clients that are no client of a node.
func TestClientsThatAreNoNode(t *testing.T) {
	t.Parallel()
	nodes, err := setup.ParseNodes([]string{"redis+cluster://a?addr=b:1"})
	require.NoError(t, err)
	client := nodes[0].Client().(*redis.ClusterClient)
	defer client.Close()
	twice := nodes[0].Client()
	defer twice.Close()
	_, err = New([]redis.UniversalClient{client, twice}, setup.Defaults())
	assert.ErrorContains(t, err, "are the same server")
	server := redis.NewClient(&redis.Options{Addr: "c:1", DB: 1})
	defer server.Close()
	_, err = New([]redis.UniversalClient{client, server}, setup.Defaults())
	assert.ErrorContains(t, err, "node 1 (cluster:a:6379,b:1) uses database 0, but node 2 (c:1) uses database 1")
	_, err = New([]redis.UniversalClient{(*redis.ClusterClient)(nil)}, setup.Defaults())
	assert.ErrorContains(t, err, "node 1 is nil")
}
