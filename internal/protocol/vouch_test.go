package protocol_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

// lostAndVouched has node i be met with what it keeps, until it has a word and
// the members have answered that they were asked. What they keep has not
// changed. It returns the last verdict.
func lostAndVouched(m *protocol.Membership, run string, i int, has protocol.NodeSet) (v protocol.SetVerdict) {
	for range 3 {
		m.Out = nil
		v = m.Met(i, run, has)
		for _, a := range m.Out {
			switch {
			case a.Kind == protocol.SetLife:
				has.Life = "a life"
			case a.Ask > 0:
				m.Told(a.Node, a.Ask, *m.Has(a.Node))
			}
		}
		if v.Fault != protocol.SetLost {
			return v
		}
	}
	return v
}

// restored returns the identity of the member that a node becomes, empty if
// none does.
func restored(m *protocol.Membership) string {
	for _, a := range m.Out {
		if a.Kind == protocol.SetRestore {
			return a.Identity
		}
	}
	return ""
}

// wordOfBefore: what members said before a node lost its data gives it no
// place.
func wordOfBefore(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "c"}, rules)
	meet(m, "run", []int{0, 1, 2}, recordedAt(set, "a"), recordedAt(set, "b"), recordedAt(set, "c"))
	m.Down(2)
	m.Met(2, "run 2", protocol.NodeSet{Life: "one"})
	assert.Empty(t, restored(m), "a and b said so before")
}

// wordForAnotherLife: what members said before a node lost its data once more
// gives it no place, where the node keeps no word.
func wordForAnotherLife(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "c"}, rules)
	meet(m, "run", []int{0, 1}, recordedAt(set, "a"), recordedAt(set, "b"))
	m.Out = nil
	m.Met(2, "run", protocol.NodeSet{})
	for _, a := range m.Out {
		if a.Ask > 0 {
			m.Told(a.Node, a.Ask, *m.Has(a.Node))
		}
	}
	m.Down(2)
	m.Met(2, "run 2", protocol.NodeSet{})
	assert.Empty(t, restored(m), "it may be another life than the one in which a and b were asked")
}

func TestAPlaceIsGivenBackByWordsOfThisLife(t *testing.T) {
	t.Parallel()
	wordOfBefore(t, protocol.Rules{})
	wordForAnotherLife(t, protocol.Rules{})

	set := setOf(1, "a", "b", "c")
	m := protocol.NewMembership([]string{"a", "b", "c"}, protocol.Rules{})
	meet(m, "run", []int{0, 1}, recordedAt(set, "a"), recordedAt(set, "b"))
	questions := func(life string) (asks []protocol.SetAction) {
		m.Out = nil
		require.Equal(t, protocol.SetLost, m.Met(2, "run", protocol.NodeSet{Life: life}).Fault)
		for _, a := range m.Out {
			require.NotZero(t, a.Ask)
			asks = append(asks, a)
		}
		return asks
	}
	first := questions("one")
	require.Len(t, first, 2, "both members are asked")
	m.Told(first[0].Node, first[0].Ask, *m.Has(first[0].Node))
	again := questions("one")
	require.Len(t, again, 1, "one has not answered")
	second := questions("two")
	require.Len(t, second, 2, "the node has lost its data again")
	m.Out = nil
	m.Told(again[0].Node, again[0].Ask, *m.Has(again[0].Node))
	assert.Empty(t, m.Out, "b was asked before that")
	for _, a := range second {
		m.Told(a.Node, a.Ask, *m.Has(a.Node))
	}
	require.Equal(t, []protocol.SetAction{{RecordStep: protocol.RecordStep{Node: 2}, Reconnect: true}}, m.Out, "it is judged again at once")
	m.Out = nil
	assert.Equal(t, protocol.SetFits, m.Met(2, "run", protocol.NodeSet{Life: "two", Text: "what it keeps"}).Fault)
	require.NotEmpty(t, restored(m))
	assert.Equal(t, "what it keeps", m.Out[0].Seen)
}

// The members are asked as soon as the node keeps its word, and the node is
// connected to once more for its place alone.
func TestMembersAreAskedOnceTheNodeKeepsItsWord(t *testing.T) {
	t.Parallel()
	set := setOf(1, "a", "b", "c")
	lost := func() *protocol.Membership {
		m := protocol.NewMembership([]string{"a", "b", "c"}, protocol.Rules{})
		meet(m, "run", []int{0, 1}, recordedAt(set, "a"), recordedAt(set, "b"))
		m.Out = nil
		v := m.Met(2, "run", protocol.NodeSet{})
		assert.True(t, v.Fault == protocol.SetLost && v.Asks)
		require.Len(t, m.Out, 1)
		require.Equal(t, protocol.SetLife, m.Out[0].Kind)
		m.Out = nil
		return m
	}
	again := []protocol.SetAction{{RecordStep: protocol.RecordStep{Node: 2}, Reconnect: true}}

	m := lost()
	m.Kept(2, protocol.NodeSet{Life: "one"})
	asks := m.Out
	m.Out = nil
	require.Len(t, asks, 2)
	for _, a := range asks {
		require.NotZero(t, a.Ask)
		m.Told(a.Node, a.Ask, *m.Has(a.Node))
	}
	assert.Equal(t, again, m.Out)
	m.Met(2, "run", protocol.NodeSet{Life: "one"})
	assert.NotEmpty(t, restored(m))

	m = lost()
	m.Kept(2, protocol.NodeSet{Life: "one"})
	for _, a := range slices.Clone(m.Out) {
		m.Told(a.Node, a.Ask, *m.Has(a.Node))
	}
	m.Met(2, "run", protocol.NodeSet{Life: "two"})
	assert.Empty(t, restored(m), "it has lost its data again")

	m = lost()
	m.Kept(2, recordedAt(set, "c"))
	assert.Equal(t, again, m.Out, "another client has given it its place")

	m = lost()
	m.Kept(2, protocol.NodeSet{})
	assert.Empty(t, m.Out, "it keeps nothing")
	m.Down(2)
	m.Kept(2, protocol.NodeSet{Life: "one"})
	assert.Empty(t, m.Out, "the connection has ended")

	m = lost()
	m.Down(1)
	m.Kept(2, protocol.NodeSet{Life: "one"})
	assert.Empty(t, m.Out, "one member is not enough")
	v := m.Verdict(2)
	assert.True(t, v.Fault == protocol.SetLost && !v.Asks)
}

// A member that says something else than before is judged again: it has moved
// on, or lost its data.
func TestAMemberThatSaysSomethingElseIsJudgedAgain(t *testing.T) {
	t.Parallel()
	set := setOf(1, "a", "b", "c")
	_, joint, _ := replaced(setOf(1, "a", "b", "c"))
	for what, says := range map[string]protocol.NodeSet{
		"it has moved on":      recordedAt(joint, "a"),
		"it has lost its data": {},
		"it is another member": recordedAt(set, "b"),
	} {
		m := protocol.NewMembership([]string{"a", "b", "c"}, protocol.Rules{})
		meet(m, "run", []int{0, 1}, recordedAt(set, "a"), recordedAt(set, "b"))
		m.Out = nil
		m.Told(0, 1, says)
		assert.Equal(t, []protocol.SetAction{{RecordStep: protocol.RecordStep{Node: 0}, Reconnect: true}}, m.Out, what)
	}
}
