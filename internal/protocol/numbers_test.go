package protocol_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

// outlivesItsNumbers has a client see one node of three replaced more often
// than it has numbers for nodes.
func outlivesItsNumbers(t assert.TestingT, rules protocol.Rules) {
	c := setOf(1, "A", "B", "C")
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	meet(m, "r", []int{0, 1, 2}, recordedAt(c, "A"), recordedAt(c, "B"), recordedAt(c, "C"))
	followed, last := 0, "C"
	for k := range 33 {
		next := fmt.Sprintf("N%d", k)
		learning := c.Begin(protocol.Change{Add: []protocol.Member{{Identity: "id" + next, Addr: next}}, Remove: []string{last}}, ballot(2))
		joint := learning.Join(ballot(3))
		c, last = joint.Finish(ballot(4)), next
		if !m.Decide(learning) {
			break
		}
		assert.True(t, m.Decide(joint) && m.Decide(c), "no number more is needed")
		followed++
		if n := bits.OnesCount32(m.Group().Sets.All()); !assert.Equal(t, 3, n, "%d nodes have a vote after %d exchanges", n, followed) {
			return
		}
	}
	assert.Equal(t, 29, followed, "exchanges for which there are numbers")
	assert.Equal(t, protocol.SetFull, m.Met(0, "r0", recordedAt(c, "A")).Fault)
	assert.Equal(t, protocol.SetFits, m.Wrong().Fault, "the list is that of the set")
	assert.Equal(t, protocol.SetFits, m.Verdict(1).Fault, "another node is used until it moves")
	assert.Zero(t, m.Room(m.Config()))

	members := make([]string, 31)
	for i := range members {
		members[i] = fmt.Sprint("M", i)
	}
	started := protocol.NewMembership([]string{"A", "B", "M0"}, rules)
	started.Exchanges = true
	large := setOf(1, members...)
	large.Stamp, large.Former = protocol.StampOf(7, ballot(1)), []string{"A", "B"}
	assert.Equal(t, protocol.SetFull, started.Met(2, "r", recordedAt(large, "M0")).Fault, "two of the list and 31 members")
}

func TestAClientThatHasNoNumberLeftStops(t *testing.T) {
	t.Parallel()
	outlivesItsNumbers(t, protocol.Rules{})
}

// The address of A leads to C's server. X is another name of A, and shows where
// A is: so C is what it shows to be.
func TestMemberIsSeenByAnotherName(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	m := protocol.NewMembership([]string{"X", "B", "A"}, protocol.Rules{})
	meet(m, "r", []int{1}, recordedAt(set, "B"))
	require.Equal(t, protocol.SetAstray, m.Met(2, "run of C", recordedAt(set, "C")).Fault)
	m.Down(2)
	require.Equal(t, protocol.SetFits, m.Met(0, "run of A", recordedAt(set, "A")).Fault)
	assert.Equal(t, protocol.SetFits, m.Met(2, "run of C", recordedAt(set, "C")).Fault)
}

// D is reached at C's address, and C leaves. C is to be added again, and needs
// a number of its own.
func TestRoomCountsNumbersThatStandForOthers(t *testing.T) {
	t.Parallel()
	_, joint, done := replaced(setOf(1, "A", "B", "C"))
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0, 1}, recordedAt(joint, "A"), recordedAt(joint, "B"))
	m.Met(3, "run of C", recordedAt(joint, "C"))
	m.Met(2, "run of D", recordedAt(joint, "D"))
	meet(m, "r", []int{0}, recordedAt(done, "A"))
	require.Equal(t, 2, m.Node(done.Place("D")))
	again := done.Begin(protocol.Change{Add: []protocol.Member{{Identity: "c again", Addr: "C"}}}, ballot(5))
	left := m.Room(again)
	require.True(t, m.Decide(again))
	assert.Equal(t, left, m.Room(again), "so many numbers are left as was said before")
}
