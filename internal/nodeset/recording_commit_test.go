package nodeset_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
)

// A connection breaks before the node has got its commit. It gets it with the
// next one, with the operator's word: the node does not begin a guard time,
// whatever the others have got.
func TestACommitThatIsLostComesWithTheNextConnection(t *testing.T) {
	t.Parallel()
	for lost := 1; lost <= len(abc); lost++ {
		w := blank()
		p := w.start(abc...).settle(t)
		r := p.recording(true, nodeset.SetCommit)
		for i := range lost {
			p.drop(nodeset.Seed + i)
		}
		r.finish()
		p.Rejudge()
		assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
		for _, addr := range abc {
			assert.Zero(t, w.at(addr).Recovering(w.now), "%d lost: %s", lost, addr)
		}
	}
}

// A node that has got its commit may have voted since. If it comes back with a
// file from before the commit, it has lost its data like any other: it begins a
// guard time.
func TestACommitComesOnce(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		w := blank()
		p := w.start(abc...).settle(t)
		r := p.recording(true, nodeset.SetCommit)
		file := w.at("B").Set()
		if lost {
			p.drop(nodeset.Seed + 1)
		}
		r.finish()
		p.Rejudge()
		assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
		assert.Zero(t, w.at("B").Recovering(w.now))

		for _, i := range p.numbers() {
			if p.Addr(i) == "B" {
				p.drop(i)
			}
		}
		w.keep(w.at("B"), file)
		assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
		assert.NotZero(t, w.at("B").Recovering(w.now),
			"it has forgotten what it voted for; the commit was lost at first: %v", lost)
	}
}

// A set that fewer than q members remember is recorded again by all of them,
// the latest that one remembers.
func TestASetIsRecordedAgain(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	learning, joint, done := replaced(set)
	for _, of := range []struct {
		what  string
		world *world
		list  []string
		again *nodeset.Configuration
	}{
		{"a client that starts", blank().serve(set, "A"), abc, set},
		{"its list lacks a member", blank().serve(set, "A"), abc[:2], nil},
		{"q remember it", blank().serve(set, "A", "B"), abc, nil},
		{"another set is there", blank().serve(set, "A").serve(setOf(2, "B", "D"), "B"), abc, nil},
		{"the set of now, of which B is behind", blank().serve(done, "A"), []string{"A", "B", "D"}, done},
		{"it is being changed", blank().serve(learning, "A"), []string{"A", "B", "C", "D"}, nil},
		{"so it is in the joint stage", blank().serve(joint, "A"), []string{"A", "B", "C", "D"}, nil},
	} {
		p := of.world.start(of.list...).settle(t)
		require.Equal(t, of.again != nil, p.Recorder.Due(), of.what)
		if of.again == nil {
			continue
		}
		r := p.recording(false, 0)
		assert.True(t, r.Forgotten, of.what)
		assert.Equal(t, nodeset.RecordDone, r.finish(), of.what)
		assert.Equal(t, of.again, p.settle(t).Config(), of.what)
		assert.Len(t, p.votes(), 3, of.what)
		assert.NotZero(t, of.world.at(of.list[1]).Recovering(0), of.what)
	}

	// A client that runs does it as well, where two of three have forgotten.
	w := blank().serve(set, abc...)
	p := w.start(abc...).settle(t)
	w.lose("A", "B")
	p.drop(0)
	p.drop(1)
	p.settle(t)
	require.True(t, p.Recorder.Due())
	other := w.wanting(abc...)
	assert.Equal(t, nodeset.RecordDone, p.recording(false, 0).finish())
	assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
	for i := range other.conns {
		other.drop(i)
	}
	assert.Equal(t, "ABC", sorted(other.settle(t).votes()))
}

// A client whose commit comes too late, as another one has the node accept its
// own ballot, takes the node for one whose set is about to be recorded.
func TestACommitAtAnotherBallotIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := blank()
	a, b := w.wanting(abc...), w.wanting(abc...)
	a.recording(false, nodeset.SetCommit)
	b.recording(false, nodeset.SetCommit)
	a.drop(nodeset.Seed)
	a.connect(nodeset.Seed)
	assert.Equal(t, nodeset.SetPending, a.Verdict(nodeset.Seed).Fault)
	assert.Equal(t, nodeset.SetAccepted, w.at("A").Set().Phase)
}

// What a node has accepted of a list is not void as this client's list has
// another set: it must be a node of that list.
func TestAnAcceptanceOfOtherNodesIsNotVoid(t *testing.T) {
	t.Parallel()
	w := blank().serve(setOf(1, abc...), "A")
	w.keep(w.at("B"), acceptedAt(setOf(2, "B", "D"), "B", 2))
	p := w.start(abc...).settle(t)
	require.True(t, p.Recorder.Due())
	r := p.recording(false, nodeset.SetRetire)
	assert.Equal(t, nodeset.RecordOther, r.Outcome)
	assert.True(t, r.Begun)
}

// No connection that a recording uses ends by its pause before the recording is
// over: to far nodes its three round trips may take longer than each pause. Nor
// does the client begin another one meanwhile, by an operator's word either: the
// two would supersede each other, and the end of one would be taken for that of
// the other.
func TestARecordingKeepsItsConnections(t *testing.T) {
	t.Parallel()
	again := func(p *party) bool {
		p.Out = nil
		p.JudgeAgain(nodeset.Seed)
		return slices.ContainsFunc(p.Out, func(a nodeset.SetAction) bool { return a.Reconnect })
	}
	w := blank()
	p := w.wanting(abc...)
	r := p.recording(false, nodeset.SetAccept)
	assert.False(t, p.Recorder.Due())
	assert.Nil(t, p.recording(true, 0))
	assert.False(t, again(p))
	for len(r.Out) > 0 {
		r.lose()
	}
	assert.Equal(t, nodeset.RecordUnanswered, r.Outcome)
	assert.True(t, slices.ContainsFunc(p.Out, func(a nodeset.SetAction) bool { return a.Reconnect }),
		"the others' recording may be over")
	p = w.wanting(abc...)
	assert.True(t, again(p), "nothing is under way")
}

// The pause of a connection ends once. So the end of a recording judges each
// connection again that the recording has kept, whatever the node's fault is.
func TestTheEndOfARecordingJudgesItsNodesAgain(t *testing.T) {
	t.Parallel()
	_, joint, done := replaced(setOf(1, abc...))
	w := newWorld().serve(joint, "A", "B", "C", "D")
	p := w.start(abc...).settle(t)
	w.lose("B", "C").serve(done, "A")
	for i := range joint.Members {
		p.drop(i)
	}
	p.settle(t)
	require.Equal(t, nodeset.SetAhead, p.fault("A"))
	require.Equal(t, nodeset.SetBetween, p.fault("B"))
	r := p.recording(false, nodeset.SetAccept)
	require.NotNil(t, r)
	for _, addr := range []string{"A", "B", "D"} {
		p.JudgeAgain(joint.Members[joint.Place(addr)].Number)
	}
	assert.Empty(t, p.Out, "the recording uses them")
	r.finish()
	require.Equal(t, nodeset.RecordDone, r.Outcome)
	assert.Equal(t, done.Stamp, p.settle(t).Stamp())
}
