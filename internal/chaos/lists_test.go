package main

import (
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A process starts with the list of the beginning for as long as most of its
// servers can say what the set is, and with the set's from then on.
func TestPresent(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	nodes := lo.Times(4, func(i int) *node { return &node{id: i, server: c.Node(i)} })
	addrs := func(ids ...int) []string {
		return lo.Map(ids, func(id int, _ int) string { return nodes[id].server.Addr() })
	}
	r := newRoster(3)
	r.settled([]int{0, 3})
	require.NoError(t, nodes[0].server.Kill(), "it is a member")
	require.NoError(t, nodes[1].server.Kill(), "it has left")
	assert.Equal(t, addrs(0, 1, 2), present(nodes, r, addrs(0, 1, 2)))
	require.NoError(t, nodes[2].server.Kill())
	assert.Equal(t, addrs(0, 3), present(nodes, r, addrs(0, 1, 2)))
}
