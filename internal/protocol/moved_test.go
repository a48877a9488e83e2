package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// lostSight is a client of a recorded set of a, b and c that has met all three,
// and does not reach c any more.
func lostSight(rules protocol.Rules) (*protocol.Membership, *protocol.Configuration) {
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "c"}, rules)
	meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), recordedAt(set, "c"))
	m.Down(2)
	return m, set
}

// A node goes on at an address where its member shows itself. There it is a
// member, and it gets its place back if it loses its data there.
func TestANodeGoesOnAtAnotherAddress(t *testing.T) {
	t.Parallel()
	m, set := lostSight(protocol.Rules{})
	list := []string{"a", "b", "d"}
	assert.Equal(t, -1, m.Moves("b", recordedAt(set, "b"), list), "it is a node already")
	assert.Equal(t, 2, m.Moves("d", recordedAt(set, "c"), list))
	m.Move(2, "d", recordedAt(set, "c"))
	assert.Equal(t, list, m.List())
	assert.Zero(t, m.Outside(), "it is a member still: holders and waiters keep its votes")
	assert.Equal(t, -1, m.Moves("e", recordedAt(set, "c"), []string{"a", "b", "d", "e"}), "a copy of its data, while it is named where it is")
	assert.Equal(t, protocol.SetFits, m.Met(2, "run2", recordedAt(set, "c")).Fault)
	assert.Equal(t, -1, m.Moves("e", recordedAt(set, "c"), []string{"a", "b", "e"}), "a copy of its data, while it runs")
	m.Down(2)
	m.Out = nil
	assert.Equal(t, protocol.SetFits, lostAndVouched(m, "run3", 2, protocol.NodeSet{}).Fault)
	assert.Equal(t, protocol.SetRestore, m.Out[len(m.Out)-1].Kind)
}

// A client whose list is another one than the set's uses a newer list that is
// the set's.
func TestAListThatIsRefusedIsReplaced(t *testing.T) {
	t.Parallel()
	set, other := setOf(1, "a", "b", "c"), setOf(9, "d", "e", "f")
	m := protocol.NewMembership([]string{"a", "b", "d"}, protocol.Rules{})
	meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), recordedAt(other, "d"))
	assert.Equal(t, protocol.SetWrong, m.Wrong().Fault)
	assert.Equal(t, -1, m.Moves("e", recordedAt(other, "e"), []string{"a", "b", "e"}), "of the other set")
	assert.Equal(t, 2, m.Moves("c", recordedAt(set, "c"), []string{"a", "b", "c"}))
	m.Move(2, "c", recordedAt(set, "c"))
	assert.Equal(t, protocol.SetFits, m.Wrong().Fault)
	assert.Equal(t, protocol.SetFits, m.Met(2, "run", recordedAt(set, "c")).Fault)
}

// Without a recorded set nothing says which server is which node.
func TestNoNodeMovesWithoutASet(t *testing.T) {
	t.Parallel()
	m := protocol.NewMembership([]string{"a"}, protocol.Rules{})
	m.Met(0, "run", protocol.NodeSet{})
	assert.Equal(t, -1, m.Moves("b", protocol.NodeSet{}, []string{"b"}))
}

func movesToAnEmptyServer(t assert.TestingT, rules protocol.Rules) {
	m, _ := lostSight(rules)
	assert.Equal(t, -1, m.Moves("d", protocol.NodeSet{}, []string{"a", "b", "d"}))
}

func movesToACopy(t assert.TestingT, rules protocol.Rules) {
	m, set := lostSight(rules)
	assert.Equal(t, -1, m.Moves("d", recordedAt(set, "c"), []string{"a", "b", "c", "d"}))
}

// A member that cannot be reached is not replaced by an empty server, whatever
// the newer list says.
func TestNoNodeMovesToAnEmptyServer(t *testing.T) {
	t.Parallel()
	movesToAnEmptyServer(t, protocol.Rules{})
}

// A member that cannot be reached, and that the newer list still names, is not
// replaced by a copy of its data.
func TestNoNodeMovesToACopy(t *testing.T) {
	t.Parallel()
	movesToACopy(t, protocol.Rules{})
}
