package report

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/nodeset"
)

// While nodes are being exchanged, a node that answers may have no vote yet, and
// a quorum takes a majority of both sets.
func TestReadyDuringAnExchange(t *testing.T) {
	t.Parallel()
	member := func(number int, role nodeset.Role) nodeset.Member {
		return nodeset.Member{Number: number, Role: role}
	}
	down := errors.New("down")
	for _, c := range []struct {
		stage nodeset.Stage
		down  []int
		ready int
	}{
		{nodeset.Learning, nil, 3},
		{nodeset.Learning, []int{1, 2}, 1}, // D has no vote
		{nodeset.Jointly, nil, 3},
		{nodeset.Jointly, []int{0, 1}, 1}, // C and D: a majority of neither set
		{nodeset.Jointly, []int{1, 3}, 1}, // A and C: a majority of the old set alone
		{nodeset.Jointly, []int{0}, 2},
	} {
		set := &nodeset.Configuration{Stage: c.stage, Members: []nodeset.Member{ // D replaces C
			member(0, nodeset.Stays), member(1, nodeset.Stays), member(2, nodeset.Leaves), member(3, nodeset.Enters)}}
		nodes := make([]Node, 4)
		for i := range nodes {
			nodes[i].Index = i
		}
		for _, i := range c.down {
			nodes[i].Err = down
		}
		assert.Equal(t, 2, set.Quorums().Need())
		assert.Equal(t, c.ready, Ready(nodes, set), "stage %v, down: %v", c.stage, c.down)
	}
	assert.Equal(t, 1, Ready([]Node{{Index: nodeset.Seed}, {Index: nodeset.Seed + 1, Err: down}}, nil))
}
