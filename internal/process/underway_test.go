package process

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An attempt has its place until a quorum of nodes has answered or failed,
// whatever they have said.
func TestAwaitsFirstAnswers(t *testing.T) {
	c := NewClient(ClientConfig{Nodes: 3, TTL: time.Second, NodeTimeout: time.Second, Guard: 3 * time.Second})
	n := &Name{Name: "n"}
	var a Attempt
	cfg := c.Config(false)
	cfg.Terms = protocol.Terms{ID: protocol.ID{1}, Weight: 1, Capacity: 1, TTL: time.Second}
	cfg.NodeTimeout = time.Second
	c.Start(1, &a, n, cfg, lease.Links{}, lease.Deferral{})
	asked, _ := c.Step(1, &a, n)
	require.Len(t, asked, 3)
	for i := range asked {
		a.Sent(&asked[i], true)
	}
	assert.True(t, a.AwaitsFirstAnswers())
	a.Fail(2, &asked[0], false)
	assert.True(t, a.AwaitsFirstAnswers())
	a.Fail(3, &asked[2], false)
	assert.False(t, a.AwaitsFirstAnswers())
	assert.Equal(t, lease.Joining, a.State.Phase())
}
