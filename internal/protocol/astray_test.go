package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

// onlyOneEach wants each member to have a number of its own.
func onlyOneEach(t assert.TestingT, m *protocol.Membership) {
	seen := map[int]string{}
	for k, member := range m.Config().Members {
		n := m.Node(k)
		if other, ok := seen[n]; ok {
			assert.Failf(t, "one number for two members", "%s and %s are both number %d", other, member.Addr, n)
		}
		seen[n] = member.Addr
	}
}

// exchanging is a client of ABC that has met B and C, and not A. C is being
// replaced by D.
func exchanging(rules protocol.Rules) (m *protocol.Membership, set, joint *protocol.Configuration) {
	set = setOf(1, "A", "B", "C")
	_, joint, _ = replaced(set)
	m = protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	meet(m, "r", []int{1, 2}, recordedAt(set, "B"), recordedAt(set, "C"))
	return m, set, joint
}

// copyAtAnotherAddress has the client meet a copy of D's data at A's address:
// before it counts on the configuration that has D, and after.
func copyAtAnotherAddress(t assert.TestingT, rules protocol.Rules) {
	m, _, joint := exchanging(rules)
	meet(m, "x", []int{0}, recordedAt(joint, "D"))
	meet(m, "r", []int{1}, recordedAt(joint, "B"))
	onlyOneEach(t, m)
	assert.NotEqual(t, protocol.SetFits, meet(m, "x", []int{0}, recordedAt(joint, "D")).Fault, "a copy of D's data is used at A's address")
	assert.Equal(t, protocol.SetFits, meet(m, "r", []int{3}, recordedAt(joint, "D")).Fault, "D's own address is not asked")
	assert.NotEqual(t, protocol.SetFits, meet(m, "x", []int{0}, recordedAt(joint, "D")).Fault)

	// The exchange is given up. A's address shows what was a copy of D's data.
	undone := joint.Undo(ballot(5))
	meet(m, "r", []int{1, 2}, recordedAt(undone, "B"), recordedAt(undone, "C"))
	m.Out = nil
	meet(m, "x", []int{0}, recordedAt(joint, "D"))
	for _, a := range m.Out {
		assert.NotEqual(t, protocol.SetRestore, a.Kind, "a copy of D's data becomes A")
	}
}

func TestACopyAtAnotherMembersAddressIsNotUsed(t *testing.T) {
	t.Parallel()
	copyAtAnotherAddress(t, protocol.Rules{})
}

// numbersOfSwapped has the client reach C at A's address and B at C's before
// nodes are exchanged, and A nowhere.
func numbersOfSwapped(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	_, joint, _ := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	meet(m, "r", []int{2, 0}, recordedAt(set, "B"), recordedAt(set, "C"))
	assert.Equal(t, protocol.SetFits, meet(m, "r", []int{1}, recordedAt(joint, "B")).Fault)
	for range 3 { // the number of A has A's address, where C is: it is no number of C's, and needs no further one
		for i := range 5 {
			if m.Wants(i) && m.Addr(i) == "A" {
				m.Met(i, "r0", recordedAt(joint, "C"))
			}
		}
		onlyOneEach(t, m)
	}
	assert.Equal(t, 27, m.Room(joint), "five numbers: C's, B's, that of C's address, A's, and D's")
}

func TestAMemberWhoseAddressLeadsToAnotherHasItsOwnNumber(t *testing.T) {
	t.Parallel()
	numbersOfSwapped(t, protocol.Rules{})
}

// Two servers have changed their addresses with each other. Both are used once
// that was seen.
func TestServersThatChangedTheirAddresses(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	_, _, done := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "D"}, protocol.Rules{})
	m.Exchanges = true
	for range 2 {
		meet(m, "r", []int{1, 0, 2}, recordedAt(done, "B"), recordedAt(done, "D"), recordedAt(done, "A"))
	}
	onlyOneEach(t, m)
	assert.Zero(t, m.Outside()&0b111, "each of the three servers is used")
	assert.Equal(t, 0, m.Node(done.Place("D")))
}

// waits is a claim of a set of three that waits, with the vote of node 0 alone.
// node has a node answer.
func waits(t assert.TestingT, rules protocol.Rules) (c *protocol.Claim, now protocol.Time, node func(i int, vote bool)) {
	const ticket = 64
	c = protocol.NewClaim(protocol.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Second}, Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond, Rules: rules})
	now = protocol.Time(time.Hour)
	c.Start(now, ticket, 0, 0)
	out := append([]protocol.Request(nil), c.Out...)
	node = func(i int, vote bool) {
		c.Answer(now, out[i], protocol.Answer{Status: protocol.OK, Incarnation: protocol.Incarnation(i + 1), Ticket: ticket, Vote: vote})
	}
	node(0, true)
	node(1, false)
	node(2, false)
	assert.Equal(t, protocol.Waiting, c.Phase())
	return c, now, node
}

// heardAsAMember has a node vote before it is known to be a member.
func heardAsAMember(t assert.TestingT, rules protocol.Rules) {
	c, now, node := waits(t, rules)
	c.Exclude(now, 0b001, 0)
	node(2, true)
	assert.Equal(t, protocol.Waiting, c.Phase())
	c.Out = c.Out[:0]
	c.Exclude(now, 0, 0)
	assert.Equal(t, protocol.Waiting, c.Phase(), "it was another server that gave its vote, as far as is known")
	if assert.Len(t, c.Out, 1, "it is asked at once") {
		r := c.Out[0]
		c.Answer(now, r, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: r.Ticket, Vote: true})
		assert.Equal(t, protocol.Holding, c.Phase())
	}
}

func TestAViewOfBeforeCountsWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	heardAsAMember(t, protocol.Rules{})
}

// anotherMember has another member be reached by the number of a node that has
// voted.
func anotherMember(t assert.TestingT, rules protocol.Rules) {
	c, now, node := waits(t, rules)
	c.Exclude(now.Add(1), 0, 0b001)
	node(2, true)
	assert.Equal(t, protocol.Waiting, c.Phase(), "the vote of one member counts as another's")
	node(0, true)
	assert.Equal(t, protocol.Waiting, c.Phase(), "so does an answer to what was asked before")

	c, now, node = waits(t, rules)
	node(2, true)
	if assert.Equal(t, protocol.Holding, c.Phase()) {
		c.Exclude(now, 0, 0b001)
		assert.Equal(t, protocol.Lost, c.Phase(), "a holder counts it as well")
	}
}

func TestANumberThatAnotherMemberHasForgetsTheFirst(t *testing.T) {
	t.Parallel()
	anotherMember(t, protocol.Rules{})
}

func TestOthersAreThoseThatShowAnotherIdentity(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	meet(m, "r", []int{0, 1, 2}, recordedAt(set, "A"), recordedAt(set, "B"), recordedAt(set, "C"))
	require.Zero(t, m.Others())
	m.Met(0, "again", recordedAt(set, "A"))
	m.Met(1, "wiped", protocol.NodeSet{}) // it gets B's place back
	assert.Zero(t, m.Others())
	m.Met(0, "other", recordedAt(set, "C"))
	assert.Equal(t, uint32(1), m.Others())
	assert.Zero(t, m.Others(), "that is said once")
}

// blankServer has a client that starts meet an empty server at A's address,
// which leads to A once the set is known.
func blankServer(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	for _, x := range []struct {
		name, run, later string
		doubts           uint32
	}{
		{"another run", "empty", "of A", 1},
		{"the same run, which was recorded since", "of A", "of A", 0},
		{"a run that is not known", "", "", 1},
	} {
		m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
		m.Met(0, x.run, protocol.NodeSet{})
		m.Down(0)
		m.Met(1, "of B", recordedAt(set, "B"))
		assert.Zero(t, m.Doubts(), x.name)
		m.Met(0, x.later, recordedAt(set, "A"))
		assert.Equal(t, x.doubts, m.Doubts(), x.name)
		m.Met(0, "of A again", recordedAt(set, "A"))
		assert.Zero(t, m.Doubts(), "that is said once: %s", x.name)
		assert.Zero(t, m.Others(), "a holder loses what it has from a server that was restarted: %s", x.name)
	}
}

func TestAnEmptyServerAtAMembersAddressIsNotTheMember(t *testing.T) {
	t.Parallel()
	blankServer(t, protocol.Rules{})
}

// Between the two servers without an identity, the second of which is recorded
// as a member, the first one's vote does not become that of the second.
func TestTheSecondOfTwoEmptyServersIsRecorded(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Met(0, "first", protocol.NodeSet{})
	m.Met(0, "second", protocol.NodeSet{})
	m.Met(0, "second", recordedAt(set, "A"))
	assert.Equal(t, uint32(1), m.Doubts())
}

// The address led to an empty server, and the newer list names another one,
// where the member shows itself.
func TestAVoteOfAnEmptyServerDoesNotMove(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	m := protocol.NewMembership([]string{"A", "B", "D"}, protocol.Rules{})
	m.Met(2, "empty", protocol.NodeSet{})
	m.Down(2)
	m.Met(0, "of A", recordedAt(set, "A"))
	require.Equal(t, 2, m.Moves("C", recordedAt(set, "C"), []string{"A", "B", "C"}))
	m.Move(2, "C", recordedAt(set, "C"))
	assert.Equal(t, uint32(4), m.Doubts())
}

// emptied is a client of ABC whose nodes have all been emptied, so that it
// counts on no set any more.
func emptied(t *testing.T) (m *protocol.Membership, set *protocol.Configuration) {
	set = setOf(1, "A", "B", "C")
	m = protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	meet(m, "run", []int{0, 1, 2}, recordedAt(set, "A"), recordedAt(set, "B"), recordedAt(set, "C"))
	for i := range 3 {
		m.Down(i)
	}
	meet(m, "empty", []int{0, 1, 2}, protocol.NodeSet{}, protocol.NodeSet{}, protocol.NodeSet{})
	require.Nil(t, m.Config())
	require.Zero(t, m.Others()|m.Doubts())
	return m, set
}

// Each address led to an empty server, and then C's leads to C. What the empty
// server said is not C's.
func TestAnEmptyServerIsNotTheMemberThatWasForgotten(t *testing.T) {
	t.Parallel()
	m, set := emptied(t)
	m.Met(2, "run of C", recordedAt(set, "C"))
	assert.Equal(t, uint32(4), m.Others()|m.Doubts(), "the empty server's vote is C's")
}

// The nodes are recorded as another set. Holds stay.
func TestASetIsRecordedAfterOneThatWasForgotten(t *testing.T) {
	t.Parallel()
	m, _ := emptied(t)
	next := setOf(2, "A", "B", "C")
	meet(m, "empty", []int{0, 1, 2}, recordedAt(next, "A"), recordedAt(next, "B"), recordedAt(next, "C"))
	assert.Zero(t, m.Others()|m.Doubts(), "what was said is forgotten, also by holders")
}

// A holder keeps what a node said of which it is not known that it is the
// member. A waiter counts it with the next answer.
func TestAHolderKeepsWhatIsInDoubt(t *testing.T) {
	t.Parallel()
	c, now, node := waits(t, protocol.Rules{})
	c.Exclude(now, 0b001, 0)
	c.Exclude(now, 0, 0)
	node(2, true)
	assert.Equal(t, protocol.Waiting, c.Phase(), "a view in doubt lets a claim in")

	c, now, node = waits(t, protocol.Rules{})
	node(2, true)
	require.Equal(t, protocol.Holding, c.Phase())
	c.Exclude(now, 0b111, 0)
	c.Exclude(now, 0, 0)
	assert.Equal(t, protocol.Holding, c.Phase())
}

// copyAtALeftAddress has a client start that meets a copy of A's data at C's
// address, from before C left. Then B shows what followed. A itself is not
// reached.
func copyAtALeftAddress(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	_, _, done := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	m.Met(2, "run of C", recordedAt(set, "A"))
	m.Down(2)
	m.Met(1, "run of B", recordedAt(done, "B"))
	m.Out = nil
	m.Met(2, "run of C", recordedAt(set, "A"))
	assert.Equal(t, 0, m.Node(done.Place("A")), "the copy is A, beside A")
	for _, a := range m.Out {
		assert.NotEqual(t, protocol.SetMove, a.Kind, "the copy serves the set")
	}
}

func TestACopyAtAnAddressThatWasLeftIsNotUsed(t *testing.T) {
	t.Parallel()
	copyAtALeftAddress(t, protocol.Rules{})
}
