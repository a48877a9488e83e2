package protocol_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

const day = "19a00000000" // milliseconds, as in a ballot

func ballot(n int) protocol.Ballot { return protocol.Ballot(fmt.Sprintf("%s%08x", day, n)) }

// setOf is a configuration of some addresses, proposed under ballot n.
func setOf(n int, addrs ...string) *protocol.Configuration {
	c := &protocol.Configuration{Stamp: protocol.StampOf(1, ballot(n)), Guard: 20 * time.Second, Retention: 5 * time.Minute}
	for _, a := range addrs {
		c.Members = append(c.Members, protocol.Member{Identity: fmt.Sprintf("id%d-%d", len(c.Members), n), Addr: a})
	}
	return c
}

// recordedAt is what the node of that address has recorded.
func recordedAt(c *protocol.Configuration, addr string) protocol.NodeSet {
	n := protocol.NodeSet{Promised: ballot(0), Phase: protocol.SetRecorded, Identity: c.Members[c.Place(addr)].Identity, Config: c}
	n.Text = n.String()
	return n
}

func TestConfigurationAsText(t *testing.T) {
	t.Parallel()
	c := setOf(7, "10.0.0.1:6379", "/run/a b%20.sock", "[::1]:6379")
	got, ok := protocol.ParseConfiguration(c.String())
	require.True(t, ok)
	assert.Equal(t, c, got)
	assert.Equal(t, time.UnixMilli(0x19a00000000), c.Stamp.Since())
	for _, bad := range []string{"", "x", "0." + string(ballot(1)) + " 1 1 1 1 a b", string(c.Stamp) + " 1 1 1 2 a b", string(c.Stamp) + " 1 1 1 2 a b a c", string(c.Stamp) + " 1 -1 1 1 a b", "1.19a 1 1 1 1 a b",
		string(c.Stamp) + " 2 1 1 1 a b"} {
		_, ok := protocol.ParseConfiguration(bad)
		assert.False(t, ok, bad)
	}
	n := recordedAt(c, "[::1]:6379")
	again, ok := protocol.ParseNodeSet(n.String())
	require.True(t, ok)
	assert.Equal(t, n, again)
	assert.Equal(t, protocol.Layout, protocol.LayoutOf(n.String()))
	assert.Equal(t, 2, protocol.LayoutOf("0 0 c id "+string(c.Stamp)+" 2 whatever a later version writes"))
	for _, bad := range []string{"", "0 0 - - ", "0 0 c id x 2", "0 0 c id " + string(c.Stamp) + " x"} {
		assert.Zero(t, protocol.LayoutOf(bad), bad)
	}
	assert.Positive(t, protocol.StampOf(10, ballot(1)).Compare(protocol.StampOf(9, ballot(2))), "epochs are numbers")
	assert.Positive(t, protocol.StampOf(1, ballot(2)).Compare(protocol.StampOf(1, ballot(1))))
	assert.Negative(t, protocol.Stamp("").Compare(c.Stamp))
	later := protocol.NewBallot(time.UnixMilli(5), 0, ballot(9))
	assert.Greater(t, later, ballot(9), "whatever the clock shows")
}

// meetAll has a client meet the nodes of its list in order, and once more where
// it has to connect again.
func meetAll(m *protocol.Membership, run string, sets ...protocol.NodeSet) {
	for i, s := range sets {
		m.Met(i, fmt.Sprint(run, i), s)
	}
	for i := range sets {
		if !m.Judged(i) {
			m.Met(i, fmt.Sprint(run, i), sets[i])
		}
	}
	m.Out = nil
}

// meet has a client of three addresses meet nodes, and returns the last
// verdict.
func meet(m *protocol.Membership, run string, at []int, sets ...protocol.NodeSet) (v protocol.SetVerdict) {
	for i, s := range sets {
		v = m.Met(at[i], fmt.Sprint(run, at[i]), s)
	}
	return v
}

// A client whose list is not that of the set is refused at every node, and
// learns which set it is.
func listsDiffer(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "a", "b", "c")
	for _, odd := range []protocol.NodeSet{{}, recordedAt(setOf(2, "d", "e", "f"), "d")} {
		m := protocol.NewMembership([]string{"a", "b", "d"}, rules)
		meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), odd)
		assert.Equal(t, protocol.SetWrong, m.Wrong().Fault)
		assert.Equal(t, protocol.SetWrong, m.Verdict(0).Fault)
		assert.Equal(t, 2, m.Verdict(0).Node)
	}
	m := protocol.NewMembership([]string{"a", "b", "c", "d", "e"}, rules)
	assert.Equal(t, protocol.SetWrong, meet(m, "run", []int{1}, recordedAt(set, "b")).Fault)
}

func TestListsThatDiffer(t *testing.T) {
	t.Parallel()
	listsDiffer(t, protocol.Rules{})
}

// A client goes on without a set where none is recorded, and adopts it when a
// node shows one. Until then the other nodes are outside.
func TestSetIsAdopted(t *testing.T) {
	t.Parallel()
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "c"}, protocol.Rules{})
	require.Equal(t, protocol.SetFits, meet(m, "run", []int{0, 1, 2}, protocol.NodeSet{}, protocol.NodeSet{}, protocol.NodeSet{}).Fault)
	require.Zero(t, m.Outside())
	m.Refused(1)
	m.Refused(1)
	require.Len(t, m.Out, 1, "it is asked once which set it is of")
	m.Out = nil
	require.Equal(t, protocol.SetFits, meet(m, "run", []int{1}, recordedAt(set, "b")).Fault)
	assert.Equal(t, set.Stamp, m.Stamp())
	assert.Equal(t, uint32(0b101), m.Outside())
	require.Len(t, m.Out, 2, "the others are judged again")
	require.Equal(t, protocol.SetFits, meet(m, "run", []int{0, 2}, recordedAt(set, "a"), recordedAt(set, "c")).Fault)
	assert.Zero(t, m.Outside())
}

// The connection to a node whose set is about to be recorded outlasts what the
// node refuses.
func refusedWithoutAVote(t assert.TestingT, rules protocol.Rules) {
	half := recordedAt(setOf(1, "a", "b", "c"), "a")
	half.Phase = protocol.SetAccepted
	m := protocol.NewMembership([]string{"a", "b", "c"}, rules)
	assert.Equal(t, protocol.SetPending, meet(m, "run", []int{0}, half).Fault)
	m.Refused(0)
	assert.Empty(t, m.Out)
}

func TestRefusedByANodeWithoutAVote(t *testing.T) {
	t.Parallel()
	refusedWithoutAVote(t, protocol.Rules{})
}

// A node without data gets back what it was by the word of q members, and only
// where a member was.
func wordOfMembers(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "c"}, rules)
	assert.Equal(t, protocol.SetLost, meet(m, "run", []int{0, 1}, recordedAt(set, "a"), protocol.NodeSet{}).Fault, "c may know a later set")
	assert.Empty(t, slices.DeleteFunc(m.Out, func(a protocol.SetAction) bool { return a.Reconnect }))
}

func TestNodeGetsItsPlaceBack(t *testing.T) {
	t.Parallel()
	wordOfMembers(t, protocol.Rules{})
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "c"}, protocol.Rules{})
	meet(m, "run", []int{0, 1}, recordedAt(set, "a"), recordedAt(set, "b"))
	require.Equal(t, protocol.SetFits, lostAndVouched(m, "run", 2, protocol.NodeSet{}).Fault)
	last := m.Out[len(m.Out)-1]
	assert.Equal(t, protocol.SetRestore, last.Kind)
	assert.Equal(t, set.Members[2].Identity, last.Identity)

	// By another name it is known to be the member where this client has seen
	// it.
	m = protocol.NewMembership([]string{"a", "b", "alias"}, protocol.Rules{})
	meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), recordedAt(set, "c"))
	m.Down(2)
	m.Out = nil
	require.Equal(t, protocol.SetFits, lostAndVouched(m, "later", 2, protocol.NodeSet{}).Fault)
	assert.Equal(t, protocol.SetRestore, m.Out[len(m.Out)-1].Kind)

	// Where every node has lost its data, the client counts on no set any more.
	for i := range 3 {
		m.Down(i)
	}
	meet(m, "last", []int{0, 1, 2}, protocol.NodeSet{}, protocol.NodeSet{}, protocol.NodeSet{})
	assert.Empty(t, m.Stamp())
}

// A copy of a member's data is refused, with the address of the member.
func TestCopyOfAMember(t *testing.T) {
	t.Parallel()
	copyOfAMember(t, protocol.Rules{})
}

func copyOfAMember(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "d"}, rules)
	v := meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), recordedAt(set, "a"))
	assert.Equal(t, protocol.SetCopied, v.Fault)
	assert.Equal(t, 0, v.Other)
	assert.Equal(t, protocol.SetFits, m.Verdict(1).Fault)
}

// A copy that is met before the member is judged again, also when its
// connection gets ready only after the member was met: the Reconnect of then
// ends no connection. Without that the copy keeps the vote.
func TestCopyThatIsMetFirst(t *testing.T) {
	t.Parallel()
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"d", "b", "a"}, protocol.Rules{})
	meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), recordedAt(set, "a"))
	m.Out = nil
	m.Up(0)
	if assert.Len(t, m.Out, 1) {
		assert.True(t, m.Out[0].Reconnect)
		assert.Equal(t, 0, m.Out[0].Node)
	}
	m.Down(0)
	v := meet(m, "run", []int{0}, recordedAt(set, "a"))
	assert.Equal(t, protocol.SetCopied, v.Fault)
	assert.Equal(t, 2, v.Other)
}

// A client that reaches the members by other addresses than the set records
// goes on without a member that lost its data, and does not make it a member.
// With the recorded addresses such a list is refused.
func TestEmptyNodeAmongAliases(t *testing.T) {
	t.Parallel()
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"x", "y", "z"}, protocol.Rules{})
	v := meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), protocol.NodeSet{})
	assert.Equal(t, protocol.SetLost, v.Fault)
	assert.Equal(t, protocol.SetFits, m.Wrong().Fault)
	assert.Equal(t, uint32(1<<2), m.Outside())
	for _, a := range m.Out {
		assert.NotEqual(t, protocol.SetRestore, a.Kind)
	}
	m.Down(2)
	v = meet(m, "run", []int{2}, recordedAt(set, "c"))
	assert.Equal(t, protocol.SetFits, v.Fault, "another process gave it its place back")
	assert.Zero(t, m.Outside())
}

// answer has all nodes give one answer in a Recording.
func answer(r *protocol.Recording, sets ...protocol.NodeSet) {
	todo := r.Out
	r.Out = nil
	for _, s := range todo {
		r.Answer(s, sets[s.Node])
	}
}

// What a node has accepted is proposed again.
func acceptedIsProposed(t assert.TestingT, rules protocol.Rules) {
	mine, other := setOf(2, "a", "b", "c"), setOf(1, "a", "b", "c")
	accepted := recordedAt(other, "a")
	accepted.Phase, accepted.Accepted = protocol.SetAccepted, ballot(1)
	r := protocol.NewRecording(mine, ballot(2), rules)
	answer(r, accepted, protocol.NodeSet{}, protocol.NodeSet{})
	for _, s := range r.Out {
		assert.Equal(t, other.Stamp, s.Config.Stamp)
		assert.Equal(t, other.Members[s.Node].Identity, s.Identity)
	}
}

// A recording that is superseded has no node accept anything.
func supersededGivesUp(t assert.TestingT, rules protocol.Rules) {
	r := protocol.NewRecording(setOf(1, "a", "b", "c"), ballot(1), rules)
	answer(r, protocol.NodeSet{}, protocol.NodeSet{Promised: ballot(2)}, protocol.NodeSet{})
	assert.Equal(t, protocol.RecordSuperseded, r.Outcome)
	assert.Empty(t, r.Out)
}

func TestRecording(t *testing.T) {
	t.Parallel()
	acceptedIsProposed(t, protocol.Rules{})
	supersededGivesUp(t, protocol.Rules{})
	set := setOf(1, "a", "b", "c")

	r := protocol.NewRecording(setOf(2, "a", "b", "d"), ballot(2), protocol.Rules{})
	answer(r, recordedAt(set, "a"), protocol.NodeSet{}, protocol.NodeSet{})
	assert.Equal(t, protocol.RecordOther, r.Outcome)
	assert.Equal(t, set, r.Config)

	r = protocol.NewRecording(setOf(2, "a", "b", "c"), ballot(2), protocol.Rules{})
	answer(r, recordedAt(set, "a"), protocol.NodeSet{Text: "x"}, recordedAt(set, "c"))
	assert.Equal(t, protocol.RecordAlready, r.Outcome)
	require.Len(t, r.Out, 1, "the node that lacks it gets it")
	assert.Equal(t, protocol.RecordStep{Node: 1, Kind: protocol.SetRestore, Identity: set.Members[1].Identity, Config: set, Seen: "x"}, r.Out[0])
}

// A node that has recorded another set is not made a member of this one,
// whichever was recorded first.
func anotherSetStays(t assert.TestingT, rules protocol.Rules) {
	set := setOf(2, "a", "b", "c")
	for _, other := range []int{1, 3} {
		m := protocol.NewMembership([]string{"a", "b", "c"}, rules)
		meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), recordedAt(setOf(other, "c", "d", "e"), "c"))
		assert.Equal(t, protocol.SetWrong, m.Wrong().Fault)
		for _, a := range m.Out {
			assert.NotEqual(t, protocol.SetRestore, a.Kind)
		}
	}
}

func TestNodeOfAnotherSetStaysWithIt(t *testing.T) {
	t.Parallel()
	anotherSetStays(t, protocol.Rules{})
}
