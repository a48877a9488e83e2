package protocol_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

// One member alone gives no node its place back, though all others are
// connected and empty: a member of another set might give one of them to that.
func wordOfOne(t assert.TestingT, rules protocol.Rules) {
	m := protocol.NewMembership([]string{"a", "b", "c"}, rules)
	meet(m, "run", []int{0, 1, 2}, recordedAt(setOf(1, "a", "b", "c"), "a"), protocol.NodeSet{}, protocol.NodeSet{})
	lostAndVouched(m, "run", 1, protocol.NodeSet{})
	assert.Empty(t, restored(m))
}

// Where fewer than q members say what the set is, the nodes regain it when all
// nodes of the list are connected, and none of them says something else.
func TestSetIsRegained(t *testing.T) {
	t.Parallel()
	wordOfOne(t, protocol.Rules{})
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "c"}, protocol.Rules{})
	meet(m, "run", []int{0, 1}, recordedAt(set, "a"), protocol.NodeSet{})
	assert.False(t, m.Regains(), "c may know more")
	m.Out = nil
	v := meet(m, "run", []int{1, 2}, protocol.NodeSet{}, protocol.NodeSet{})
	assert.Equal(t, protocol.SetLost, v.Fault)
	assert.Empty(t, m.Out)
	require.True(t, m.Regains())
	m.Down(2)
	assert.False(t, m.Regains())
	meet(m, "run", []int{2}, protocol.NodeSet{})

	accepted := recordedAt(set, "b")
	accepted.Phase, accepted.Regains, accepted.Accepted = protocol.SetAccepted, true, ballot(3)
	round := func(r *protocol.Recording, kind protocol.RecordKind, sets ...protocol.NodeSet) {
		t.Helper()
		for _, s := range r.Out {
			assert.Equal(t, kind, s.Kind)
		}
		answer(r, sets...)
	}
	// One that was interrupted goes on, also where no node has it recorded any
	// more.
	for _, first := range []protocol.NodeSet{recordedAt(set, "a"), {}} {
		m := protocol.NewMembership([]string{"a", "b", "c"}, protocol.Rules{})
		meetAll(m, "run", first, accepted, protocol.NodeSet{})
		r := m.Regain(ballot(9))
		require.NotNil(t, r)
		round(r, protocol.SetPromise, first, accepted, protocol.NodeSet{})
		var regained, recorded []protocol.NodeSet
		for _, addr := range []string{"a", "b", "c"} {
			n := recordedAt(set, addr)
			recorded = append(recorded, n)
			n.Phase, n.Regains, n.Accepted = protocol.SetAccepted, true, ballot(9)
			regained = append(regained, n)
		}
		round(r, protocol.SetRegain, regained...)
		round(r, protocol.SetCommit, recorded...)
		assert.Equal(t, protocol.RecordAlready, r.Outcome)
		assert.Equal(t, set.Stamp, r.Config.Stamp)
	}
	// Nothing new is proposed, and nothing that an operator has begun.
	begun := accepted
	begun.Regains = false
	for _, first := range []protocol.NodeSet{{}, begun} {
		r := m.Regain(ballot(9))
		answer(r, first, protocol.NodeSet{}, protocol.NodeSet{})
		assert.Equal(t, protocol.RecordForgotten, r.Outcome)
		assert.Empty(t, r.Out)
	}
}

// The set of an exchange that is over is regained by its members: one of them
// is no node of the client's list.
func TestExchangedSetIsRegained(t *testing.T) {
	t.Parallel()
	_, joint, done := replaced(setOf(1, "A", "B", "C"))
	for _, set := range []*protocol.Configuration{joint, done} {
		m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
		m.Exchanges = true
		meet(m, "r", []int{0}, recordedAt(set, "A"))
		require.Nil(t, m.Regain(ballot(9)), "the others may know more")
		meet(m, "r", []int{1, 3}, protocol.NodeSet{}, protocol.NodeSet{})
		if set == joint {
			meet(m, "r", []int{2}, protocol.NodeSet{})
			assert.Nil(t, m.Regain(ballot(9)))
			continue
		}
		assert.Equal(t, protocol.SetLost, m.Verdict(1).Fault)
		r := m.Regain(ballot(9))
		require.NotNil(t, r)
		assert.Equal(t, []int{0, 1, 3}, []int{r.Out[0].Node, r.Out[1].Node, r.Out[2].Node})
		earlier := recordedAt(joint, "D") // what was begun for an earlier configuration gives way
		earlier.Phase, earlier.Regains, earlier.Accepted = protocol.SetAccepted, true, ballot(5)
		answer(r, recordedAt(done, "A"), protocol.NodeSet{}, protocol.NodeSet{}, earlier)
		require.Len(t, r.Out, 3)
		for _, s := range r.Out {
			assert.Equal(t, protocol.SetRegain, s.Kind)
			assert.Equal(t, done.Stamp, s.Config.Stamp)
			assert.Equal(t, done.Members[done.Place(m.Addr(s.Node))].Identity, s.Identity)
		}
	}
}

// A node that has accepted to regain an earlier configuration is not moved to a
// later one: only its own list, all of it, makes it a member.
func TestNodeThatRegainsIsNotMoved(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	_, _, done := replaced(set)
	half := recordedAt(set, "B")
	half.Phase, half.Regains = protocol.SetAccepted, true
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	assert.Equal(t, protocol.SetLost, meet(m, "r", []int{0, 1}, recordedAt(done, "A"), half).Fault)
	assert.False(t, slices.ContainsFunc(m.Out, func(a protocol.SetAction) bool { return a.Kind == protocol.SetMove || a.Kind == protocol.SetRestore }))
}

// The pause before a node is judged again may end before its connection is
// ready. The connection is ended when it is. Without that the node is not
// judged any more.
func TestJudgedAgainBeforeTheConnectionIsReady(t *testing.T) {
	t.Parallel()
	m := protocol.NewMembership([]string{"a", "b", "c"}, protocol.Rules{})
	meet(m, "run", []int{0, 1}, recordedAt(setOf(1, "a", "b", "c"), "a"), protocol.NodeSet{})
	m.Out = nil
	m.Again(1)
	m.Out = nil // it ended nothing
	m.Up(1)
	require.Len(t, m.Out, 1)
	assert.Equal(t, 1, m.Out[0].Node)
	assert.True(t, m.Out[0].Reconnect)
}
