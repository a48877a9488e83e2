package nodeset_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
)

// One node of the list is no reason to go on with another configuration while a
// quorum of members is connected, even if the list has that node alone.
func TestAListIsNotAskedBesideAQuorum(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	_, _, done := replaced(set)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	p.Relist([]string{"A"})
	p.settle(t)
	w.serve(done, "A")
	p.drop(0)
	p.connect(0)
	assert.Equal(t, set.Stamp, p.settle(t).Stamp())
	assert.Equal(t, nodeset.SetAhead, p.fault("A"))
}

// Members that are connected, and have no vote, are no quorum: the list is
// asked.
func TestMembersWithoutAVoteAreNoQuorum(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	_, _, done := replaced(set)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	p.Relist([]string{"D"})
	w.serve(setOf(2, "B", "C"), "B", "C").serve(done, "D")
	for i := range 3 {
		p.drop(i)
	}
	assert.Equal(t, done.Stamp, p.settle(t).Stamp())
}

// What a server has shown ends with its connection.
func TestAConnectionThatHasEndedSaysNothing(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	_, _, done := replaced(set)

	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	w.serve(done, "A")
	p.drop(0)
	p.connect(0)
	p.drop(0)
	w.serve(done, "B")
	p.drop(1)
	p.connect(1)
	assert.Equal(t, set.Stamp, p.Stamp(), "A is a member")

	later := *done
	later.Last, later.Members = 4, append(slices.Clone(done.Members),
		nodeset.Member{Number: 4, Identity: "E", Addr: "E"})
	w = newWorld().serve(set, abc...).serve(&later, "D", "E")
	p = w.start(abc...).settle(t)
	p.Relist([]string{"D", "E", "F"})
	for i := range 3 {
		w.at(abc[i]).up = false
		p.drop(i)
	}
	p.connect(nodeset.Seed)
	p.drop(nodeset.Seed)
	p.connect(nodeset.Seed + 1)
	assert.Equal(t, set.Stamp, p.Stamp(), "D is of the list")
	p.connect(nodeset.Seed)
	assert.Equal(t, later.Stamp, p.Stamp())

	w = newWorld().serve(set, "A", "B")
	w.keep(w.at("C"), acceptedAt(setOf(2, "B", "C"), "C", 2))
	p = w.start(abc...)
	for _, i := range []int{nodeset.Seed, nodeset.Seed + 1, 0, 1} {
		p.connect(i)
	}
	p.drop(1)
	p.connect(2)
	assert.Equal(t, nodeset.SetPending, p.Verdict(2).Fault, "B may have lost its data, and accept what C has")
}

// What is not connected, or has no vote, is not judged again: that is done as
// its connection begins, or after a while.
func TestWhatIsJudgedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld().serve(setOf(1, abc...), "A", "B").serve(setOf(2, "C", "D"), "C")
	p := w.start(abc...).settle(t)
	p.Refused(2)
	assert.Empty(t, p.Out, "C has no vote")
	p.drop(0)
	p.act()
	p.Again(0)
	assert.Empty(t, p.Out, "A is not connected")
	p.Refused(1)
	require.Len(t, p.Out, 1)
	assert.True(t, p.Out[0].Reconnect)
}

// Connections to the addresses of a new list begin.
func TestConnectionsToANewListBegin(t *testing.T) {
	t.Parallel()
	p := newWorld().start(abc...).settle(t)
	p.Relist([]string{"A", "X", "C", "Y"})
	begins := map[string]bool{}
	for _, a := range p.Out {
		if a.Begin {
			begins[p.Addr(a.Node)] = true
		}
	}
	assert.Equal(t, map[string]bool{"X": true, "Y": true}, begins)
}
