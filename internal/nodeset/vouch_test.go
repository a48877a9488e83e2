package nodeset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/testkit/findings"
)

// lost is a client of the set ABC whose C has lost its data, is met, and keeps
// a word if it was given one.
func lost(connected ...int) (p *party, set *nodeset.Configuration) {
	set = setOf(1, abc...)
	p = newWorld().serve(set, abc...).start(abc...)
	p.settle(&findings.Findings{})
	for i := range 3 {
		p.drop(i)
	}
	p.w.lose("C")
	for _, i := range append(connected, 2) {
		p.connect(i)
	}
	return p, set
}

// isBack reports whether the server at C is a member again.
func (p *party) isBack() bool { return p.w.at("C").Set().Config != nil }

// wordOfMembers: one member gives a blank server no place.
func wordOfMembers(t assert.TestingT) {
	p, _ := lost(0)
	for len(p.asks) > 0 {
		p.answer()
	}
	p.drop(2)
	p.connect(2)
	assert.False(t, p.isBack(), "B may know a later set")
}

// wordOfBefore: what members said before a node lost its data gives it no
// place.
func wordOfBefore(t assert.TestingT) {
	p, _ := lost(0, 1)
	p.drop(2)
	p.connect(2)
	assert.False(t, p.isBack(), "A and B said so before")
}

// wordForAnotherLife: what members said before a node lost its data once more
// gives it no place.
func wordForAnotherLife(t assert.TestingT) {
	p, _ := lost(0, 1)
	for len(p.asks) > 0 {
		p.answer()
	}
	p.w.lose("C")
	p.drop(2)
	p.connect(2)
	assert.False(t, p.isBack(), "it may be another life than the one in which A and B were asked")
}

func TestAPlaceIsGivenBackByWordsOfThisLife(t *testing.T) {
	t.Parallel()
	wordOfMembers(t)
	wordOfBefore(t)
	wordForAnotherLife(t)
	p, set := lost(0, 1)
	v := p.Verdict(2)
	assert.True(t, v.Fault == nodeset.SetLost && v.Asks)
	require.Len(t, p.asks, 2, "both members are asked, on the connections that there are")
	p.answer()
	p.drop(2)
	p.connect(2)
	assert.False(t, p.isBack(), "B has not answered")
	p.settle(t)
	assert.True(t, p.isBack())
	assert.Equal(t, set.Members[2].Identity, p.w.at("C").Set().Identity)
	assert.NotZero(t, p.w.at("C").Recovering(p.w.now), "its guard time begins")
	assert.Equal(t, "ABC", sorted(p.votes()))
}

// A blank server that was met before enough members gets its place once these
// are met.
func TestABlankServerThatWasMetFirst(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	learning, _, _ := replaced(set)
	for _, c := range []*nodeset.Configuration{set, learning} {
		p := newWorld().serve(c, abc...).start(abc...).settle(t)
		for i := range 4 {
			p.drop(i)
		}
		p.w.lose("C")
		p.connect(2)
		p.connect(0)
		assert.False(t, p.Verdict(2).Asks)
		p.settle(t)
		assert.Contains(t, p.votes(), "C")
	}
}

// So does one whose members were asked before, if all connections ended before
// they had answered. While the set is being changed, a blank server is between
// two configurations until enough members are met.
func TestABlankServerThatWasMetFirstAgain(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	learning, _, _ := replaced(set)
	for _, c := range []*nodeset.Configuration{set, learning} {
		p := newWorld().serve(c, abc...).start(abc...).settle(t)
		p.w.lose("C")
		p.drop(2)
		p.connect(2)
		for i := range 4 {
			p.drop(i)
		}
		p.asks = nil
		p.connect(2)
		p.settle(t)
		assert.Contains(t, p.votes(), "C", "%s", c.Stage)
	}
}

// Between a word and a place the server may have changed.
func TestAWordThatIsOver(t *testing.T) {
	t.Parallel()
	p, set := lost(0, 1)
	p.w.serve(set, "C") // another client has given it its place
	p.HandleLife(2, p.w.at("C").Set())
	p.act()
	assert.Nil(t, p.conns[2], "it is judged again")
	p, _ = lost(0, 1)
	p.asks = nil
	p.HandleLife(2, nodeset.NodeSet{})
	p.act()
	assert.Empty(t, p.asks, "it keeps nothing")
	p.drop(2)
	p.HandleLife(2, nodeset.NodeSet{Life: "one"})
	p.HandleLife(7, nodeset.NodeSet{Life: "one"})
	p.HandleReport(7, 1, nodeset.NodeSet{}, nodeset.RecordedNext{})
	p.act()
	assert.Empty(t, p.asks, "the connection has ended")
}

// A member that says something else than before is judged again: it has moved
// on, or lost its data.
func TestAMemberThatSaysSomethingElseIsJudgedAgain(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	_, joint, _ := replaced(set)
	for what, says := range map[string]nodeset.NodeSet{
		"it has moved on": recordedAt(joint, "A"), "it has lost its data": {},
		"it is another member": recordedAt(set, "B"),
	} {
		p := newWorld().serve(set, abc...).start(abc...).settle(t)
		p.HandleReport(0, 1, says, nodeset.RecordedNext{})
		p.act()
		assert.Nil(t, p.conns[0], what)
		assert.NotNil(t, p.conns[1], what)
	}
}

// An answer to an earlier question gives no place, and neither does one that
// was of another configuration.
func TestAnswersOfBeforeGiveNoPlace(t *testing.T) {
	t.Parallel()
	p, _ := lost(0, 1)
	before := p.asks
	require.Len(t, before, 2)
	p.w.lose("C")
	p.drop(2)
	p.connect(2)
	p.asks = before
	p.answer()
	p.answer()
	p.drop(2)
	p.connect(2)
	assert.False(t, p.isBack(), "C has lost its data since A and B were asked")

	p, set := lost(0, 1)
	_, _, done := replaced(set)
	p.asks = nil
	p.w.serve(done, "A")
	p.drop(0)
	p.connect(0)
	require.Equal(t, nodeset.SetAhead, p.fault("A"))
	for len(p.asks) > 0 {
		p.answer()
	}
	p.w.serve(set, "A")
	p.drop(0)
	p.connect(0)
	p.asks = nil
	p.drop(2)
	p.connect(2)
	assert.False(t, p.isBack(), "A has said another thing, and shows an older file")
	assert.True(t, func() bool { p.settle(t); return p.isBack() }())
}
