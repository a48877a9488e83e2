package nodeset_test

// When a client forgets its set: see RuleSetForget.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
)

// A set was recorded with an address that leads elsewhere from here: localhost,
// for example. The blank server there does not make the client forget the set
// while the server of its list shows that it is there.
func leadsElsewhere(t assert.TestingT) {
	set := setOf(1, "localhost")
	w := newWorld()
	w.keep(w.at("X"), recordedAt(set, "localhost"))
	p := w.start("X").settle(t)
	p.Recorder.Want()
	for range 2 {
		assert.Equal(t, set.Stamp, p.settle(t).Stamp())
		assert.False(t, p.Recorder.Due(), "there would be two sets")
		p.drop(nodeset.Seed) // it is judged again, and the address is met before it
		p.drop(0)
		p.connect(0)
	}
}

// What a node of the list showed before the client had a quorum does not keep
// the set: the member has moved since, and then lost its data.
func TestAListedAddressThatAMemberHasLeft(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A")
	w := newWorld().serve(set, "A")
	p := w.start("A").settle(t)
	moved := change.Finish(change.Begin(set, change.Goal{Move: []nodeset.Member{
		{Identity: set.Members[0].Identity, Addr: "A2"}}}, ballot(2)), ballot(3))
	w.keep(w.at("A2"), recordedAt(moved, "A2"))
	p.Decide(moved)
	w.at("A").up = false
	require.Equal(t, "A2", sorted(p.settle(t).votes()))
	w.lose("A2")
	p.drop(0)
	p.settle(t)
	assert.Nil(t, p.Config())
}

// The address of the set led to its server for a while, through a tunnel, so the
// client needed its list no longer. Then it leads to a blank server. The list is
// asked again, and what it showed before counts until it has answered.
func TestAnAddressThatLedRight(t *testing.T) {
	t.Parallel()
	set := setOf(1, "localhost")
	w := newWorld().serve(set, "localhost")
	w.keep(w.at("X"), recordedAt(set, "localhost"))
	p := w.start("X").settle(t)
	require.Equal(t, "localhost", sorted(p.votes()))
	require.False(t, p.Wants(nodeset.Seed))
	p.Recorder.Want()
	w.lose("localhost")
	p.drop(0)
	p.connect(0)
	assert.Equal(t, set.Stamp, p.Stamp())
	assert.Equal(t, set.Stamp, p.settle(t).Stamp())
	assert.False(t, p.Recorder.Due(), "there would be two sets")
}

func TestAnAddressThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	leadsElsewhere(t)
}

// A set of one is extended to three, and the first node loses its data. A
// client that has not followed does not forget the set while another member may
// be a full one by now: not even if that shows no later configuration yet.
func forgetsDuringAnExtension(t assert.TestingT) {
	set := setOf(1, "A")
	goal := change.Goal{Add: []nodeset.Member{{Identity: "b", Addr: "B"}, {Identity: "c", Addr: "C"}}}
	learning := change.Begin(set, goal, ballot(2))
	joint := change.Join(learning, ballot(3))
	done := change.Finish(joint, ballot(4))
	again := func(p *party) {
		for i := range p.conns {
			p.drop(i)
		}
		p.Recorder.Want()
		p.settle(t)
	}
	for _, c := range []*nodeset.Configuration{learning, joint} {
		w := newWorld().serve(c, abc...)
		p := w.start(abc...).settle(t)
		w.lose("A")
		again(p)
		assert.Equal(t, c.Stamp, p.Stamp())
		assert.False(t, p.Recorder.Due(), "others may know what was decided")
		w.serve(done, "B", "C")
		again(p)
		assert.Equal(t, done.Stamp, p.Stamp())
		assert.Equal(t, "ABC", sorted(p.votes()))

		w = newWorld().serve(c, abc...)
		p = w.start(abc...).settle(t)
		w.lose(abc...)
		again(p)
		assert.Nil(t, p.Config(), "the set is gone")
		assert.True(t, p.Recorder.Due())
	}
}

func TestASetThatIsForgottenDuringAnExtension(t *testing.T) {
	t.Parallel()
	forgetsDuringAnExtension(t)
}
