package repair_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// While nodes are being exchanged, a majority of each set goes on to vote
// without the node that is restarted.
func TestSparesOfEachSet(t *testing.T) { sparesOfEachSet(t) }

func sparesOfEachSet(t assert.TestingT) {
	const a, b, c, d, e = 1, 2, 4, 8, 16
	may := func(sets protocol.Quorums, votes, caughtUp uint32) bool {
		nodes := make([]repair.NodeHealth, 5)
		for i := range nodes {
			nodes[i] = repair.NodeHealth{Votes: votes>>i&1 > 0, CaughtUp: caughtUp>>i&1 > 0}
		}
		return repair.MayRestart(nodes, sets)
	}
	joint := protocol.Quorums{Present: a | b | c, Next: a | d | e}
	assert.True(t, may(joint, a|b|c|d|e, a|b|c|d|e))
	assert.False(t, may(joint, a|c|d|e, a|c|d|e), "C is restarted, and A alone is left of ABC")
	assert.False(t, may(joint, a|b|c|d, a|b|c|d), "D is restarted, and A alone is left of ADE")
	assert.False(t, may(joint, a|b|c|d|e, a|b|c|d), "as above, when E has lost its data")
	learning := protocol.Majority(3)
	assert.True(t, may(learning, a|b|c, a|b|c), "D and E have no vote yet")
	assert.False(t, may(learning, a|c|d|e, a|c|d|e), "as above")
	assert.False(t, may(learning, a|b|c|d|e, a|c|d|e), "as above")
}
