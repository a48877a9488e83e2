package fleet

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process starts with the list of the beginning for as long as most of its
// servers can say what the set is, and with the set's from then on.
func TestPresent(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 4)
	nodes := lo.Times(4, func(i int) *Node {
		require.NoError(t, c.Node(i).Client().Set(t.Context(), script.SetKey(prefix), "a set", 0).Err())
		return &Node{ID: i, Server: c.Node(i), Admin: c.Node(i).Client()}
	})
	addrs := func(ids ...int) []string {
		return lo.Map(ids, func(id int, _ int) string { return nodes[id].Server.Addr() })
	}
	r := NewRoster(3)
	r.Settled([]int{0, 3})
	require.NoError(t, nodes[0].Server.Kill(), "it is a member")
	require.NoError(t, nodes[1].Server.Kill(), "it has left")
	assert.Equal(t, addrs(0, 1, 2), Present(nodes, r, addrs(0, 1, 2)))
	require.NoError(t, nodes[2].Admin.FlushAll(t.Context()).Err(), "it is to be added again")
	assert.Equal(t, addrs(0, 3), Present(nodes, r, addrs(0, 1, 2)))
	r.May([]int{1, 2})
	assert.Equal(t, addrs(3), Present(nodes, r, addrs(0, 1, 2)), "it alone knows a set")
}

// A list excludes ours until some node may have shown a set that it does not
// meet, and that was not known when the list was given out.
func TestListsAndSets(t *testing.T) {
	assert.True(t, meet([]int{0, 1, 2}, []int{0, 1, 2}))
	assert.False(t, meet([]int{0, 1, 2}, []int{0, 1, 3}), "1 and 2, 0 and 3")
	assert.False(t, meet([]int{0, 1, 2}, []int{0, 1, 2, 3, 4}))
	assert.True(t, meet([]int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3}))

	set := func(epoch uint64, stage nodeset.Stage, addrs ...string) nodeset.NodeSet {
		c := &nodeset.Configuration{Stamp: nodeset.StampOf(epoch, nodeset.NewBallot(time.Now(), 0, "")),
			Stage: stage}
		for _, addr := range addrs {
			c.Members = append(c.Members, nodeset.Member{Addr: addr})
		}
		return nodeset.NodeSet{Phase: nodeset.SetRecorded, Config: c}
	}
	var s Shown
	first, joint, next := set(1, nodeset.Stable, "a", "b", "c"), set(3, nodeset.Jointly, "a", "b", "c", "d"),
		set(4, nodeset.Stable, "a", "b", "d")
	before := first.Config.Addrs()
	s.note(nodeset.NodeSet{}, 5)
	s.note(first, 10)
	s.note(joint, 20)
	assert.Zero(t, s.Until(before, 0), "both sets count")
	s.note(next, 40)
	s.note(next, 30)
	s.note(next, 50)
	assert.EqualValues(t, 30, s.Until(before, 0), "the node that may have shown it first")
	assert.Zero(t, s.Until(next.Config.Addrs(), record.Now()), "the set of before is over")
}
