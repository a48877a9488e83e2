package nodeset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// outOf returns what is to be done, and empties it.
func outOf(l *nodeset.Incarnations) []nodeset.NodeAction {
	out := l.Out
	l.Out = nil
	return out
}

// A reply counts if it is of the incarnation that the connection began with.
func TestReplyOfAnotherIncarnation(t *testing.T) {
	t.Parallel()
	l := nodeset.NewIncarnations(1)
	l.Connect(0)
	assert.Zero(t, l.Voting(0))
	l.Show(0, 1)
	assert.Equal(t, []nodeset.NodeAction{{Kind: nodeset.NodeVotes, Node: 0}}, outOf(l))
	assert.True(t, l.Check(0, 1))
	assert.True(t, l.CheckPush(0, 1))
	assert.Empty(t, outOf(l))
	assert.False(t, l.CheckPush(0, 9))
	assert.Empty(t, outOf(l), "an answer will show it")
	assert.False(t, l.Check(0, 9))
	assert.Equal(t, []nodeset.NodeAction{{Kind: nodeset.NodeReconnect, Node: 0}}, outOf(l))
	l.Connect(0)
	l.Show(0, 9)
	assert.True(t, l.Check(0, 9))
}

// A push that comes before the incarnation is known does not count.
func TestPushBeforeTheIncarnation(t *testing.T) {
	t.Parallel()
	l := nodeset.NewIncarnations(1)
	l.Connect(0)
	assert.False(t, l.CheckPush(0, 1))
	assert.True(t, l.Check(0, 1), "the first reply shows the incarnation")
	assert.True(t, l.CheckPush(0, 1))
}

// A node whose clock has jumped begins another incarnation.
func TestNodeWhoseClockJumped(t *testing.T) {
	t.Parallel()
	l := nodeset.NewIncarnations(1)
	l.Connect(0)
	l.Show(0, 1)
	outOf(l)
	l.Distrust(0)
	a := outOf(l)[0]
	assert.Equal(t, nodeset.NodeAction{Kind: nodeset.NodeMark, Node: 0, Inc: 1, Try: a.Try}, a)
	assert.False(t, l.Check(0, 1), "an answer that was under way")
	l.Marked(0, a.Try, 0, false)
	assert.True(t, l.Check(0, 1), "the next answer asks for it again")
	l.Distrust(0)
	again := outOf(l)[0]
	l.Marked(0, a.Try, 7, true)
	assert.Zero(t, l.Voting(0), "the result of an earlier try does not count")
	l.Marked(0, again.Try, 2, true)
	assert.Equal(t, []nodeset.NodeAction{{Kind: nodeset.NodeVotes, Node: 0}, {Kind: nodeset.NodeAsk, Node: 0},
		{Kind: nodeset.NodeRepair, Node: 0}}, outOf(l))
	assert.True(t, l.Check(0, 2))
}

// An incarnation that others have followed does not count again. The node
// is made to begin another one, as soon as it can be asked.
func TestIncarnationThatReturns(t *testing.T) {
	t.Parallel()
	for how, show := range map[string]func(l *nodeset.Incarnations){
		"its marker was read": func(l *nodeset.Incarnations) {
			l.Show(0, 1)
			assert.Empty(t, outOf(l), "it cannot be asked yet")
			assert.Zero(t, l.Voting(0))
			l.Up(0)
		},
		"its marker was not read": func(l *nodeset.Incarnations) {
			l.Up(0)
			assert.False(t, l.Check(0, 1))
		},
	} {
		l := nodeset.NewIncarnations(1)
		const last = 4000 // a server may be restarted each second
		for inc := range protocol.Incarnation(last) {
			l.Connect(0)
			l.Show(0, inc+1)
			l.Up(0)
			outOf(l)
		}
		l.Connect(0)
		show(l)
		a := outOf(l)[0]
		assert.Equal(t, nodeset.NodeAction{Kind: nodeset.NodeMark, Node: 0, Inc: 1, Try: a.Try}, a, how)
		assert.False(t, l.Check(0, 1), how)
		l.Marked(0, a.Try, 0, false)
		assert.Empty(t, outOf(l), "%s: it is not asked again at once", how)
		assert.False(t, l.Check(0, 1), how)
		l.Up(0)
		l.Marked(0, outOf(l)[0].Try, last+1, true)
		assert.True(t, l.Check(0, last+1), how)
	}
}
