package script_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Processes that watch a record and are killed leave their watches behind.
// Those are gone after half as many reads of the others, though nothing is
// recorded in the meantime.
func TestWatchesOfTheDead(t *testing.T) {
	const dead, alive = 1000, 3
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	watch := func(id uint64, ttl time.Duration) {
		terms := n.terms(id, 1)
		terms.TTL = ttl
		_, err := n.send(t, terms, protocol.Request{Op: protocol.OpRead})
		require.NoError(t, err)
	}
	for id := range uint64(dead) {
		watch(alive+1+id, time.Minute)
	}
	require.EqualValues(t, dead, c.ZCard(t.Context(), n.keys.Watchers()).Val())
	require.NoError(t, c.Del(t.Context(), n.keys.Watchers()).Err())
	for id := range uint64(dead) {
		watch(alive+1+id, time.Millisecond)
	}
	for range dead/2 + alive {
		for id := range uint64(alive) {
			watch(1+id, time.Minute)
		}
	}
	assert.EqualValues(t, alive, c.ZCard(t.Context(), n.keys.Watchers()).Val())
}
