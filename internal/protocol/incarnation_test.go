package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

const guardTime = 10 * time.Second

// lives is an Incarnations under test, with a clock.
type lives struct {
	*protocol.Incarnations
	now protocol.Time
}

func newLives(addresses int) *lives { return newLivesWith(addresses, protocol.Rules{}) }

func newLivesWith(addresses int, rules protocol.Rules) *lives {
	return &lives{protocol.NewIncarnations(addresses, guardTime, rules), protocol.Time(time.Hour)}
}

// out returns what is to be done, and empties it.
func (l *lives) out() []protocol.NodeAction {
	out := l.Out
	l.Out = nil
	return out
}

// connected has each address reach a server of its own, whose run has the given
// name and number, with an incarnation of its own from 1 on.
func (l *lives) connected(t assert.TestingT, run string, addresses int) {
	for i := range addresses {
		name := run
		if run != "" {
			name += string(rune('0' + i))
		}
		assert.Equal(t, -1, l.Connect(l.now, i, name))
		l.Show(l.now, i, protocol.Incarnation(i+1))
		assert.True(t, l.Up(l.now, i))
	}
	l.out()
}

// A reply counts if it is of the incarnation that the connection began with.
func TestReplyOfAnotherIncarnation(t *testing.T) {
	t.Parallel()
	l := newLives(3)
	l.connected(t, "run", 3)
	assert.True(t, l.Check(l.now, 0, 1))
	assert.True(t, l.CheckPush(0, 1))
	assert.Empty(t, l.out())
	assert.False(t, l.CheckPush(0, 9))
	assert.Empty(t, l.out(), "an answer will show it")
	assert.False(t, l.Check(l.now, 0, 9))
	assert.Equal(t, []protocol.NodeAction{{Kind: protocol.NodeReconnect, Node: 0}}, l.out())

	l.Down(l.now, 0)
	assert.Equal(t, -1, l.Connect(l.now, 0, "run0"))
	assert.Zero(t, l.Voting(0))
	l.Show(l.now, 0, 9)
	assert.Equal(t, []protocol.NodeAction{{Kind: protocol.NodeVotes, Node: 0}}, l.out())
	assert.True(t, l.Check(l.now, 0, 9))
}

// A push that comes before the incarnation is known has the node asked when it
// is known.
func TestPushBeforeTheIncarnation(t *testing.T) {
	t.Parallel()
	earlyPush(t, protocol.Rules{})
}

// earlyPush has a node push before its incarnation is known.
func earlyPush(t assert.TestingT, rules protocol.Rules) {
	l := newLivesWith(1, rules)
	l.Connect(l.now, 0, "run")
	assert.False(t, l.CheckPush(0, 1))
	assert.True(t, l.Check(l.now, 0, 1), "the first reply shows the incarnation")
	assert.Equal(t, []protocol.NodeAction{{Kind: protocol.NodeVotes, Node: 0}, {Kind: protocol.NodeAsk, Node: 0}}, l.out())
}

// A node that was another one's replica begins another incarnation.
func TestReplicaOfAnotherNode(t *testing.T) {
	t.Parallel()
	l := newLives(3)
	l.connected(t, "run", 3)
	l.Down(l.now, 2)
	assert.Equal(t, -1, l.Connect(l.now, 2, "run2"))
	l.Show(l.now, 2, 1) // node 0's
	assert.False(t, l.Up(l.now, 2))
	out := l.out()
	assert.Equal(t, []protocol.NodeAction{{Kind: protocol.NodeMark, Node: 2, Inc: 1, Try: out[0].Try}}, out)
	assert.False(t, l.Check(l.now, 2, 1))
	l.Marked(l.now, 2, out[0].Try, 0, false)
	assert.False(t, l.Check(l.now, 2, 1), "which asks again")
	again := l.out()
	assert.Len(t, again, 1)
	l.Marked(l.now, 2, out[0].Try, 5, true)
	assert.Zero(t, l.Voting(2), "the result of an earlier try does not count")
	l.Marked(l.now, 2, again[0].Try, 5, true)
	assert.True(t, l.Check(l.now, 2, 5))
	assert.True(t, l.Check(l.now, 0, 1), "the other one's stays")
}

// Where runs are not known a key tells two servers from one.
func TestAddressesThatAreCompared(t *testing.T) {
	t.Parallel()
	copied := func() (*lives, protocol.NodeAction) {
		l := newLives(2)
		l.connected(t, "", 1)
		assert.Equal(t, -1, l.Connect(l.now, 1, ""))
		l.Show(l.now, 1, 1)
		assert.False(t, l.Up(l.now, 1))
		out := l.out()
		assert.Equal(t, []protocol.NodeAction{{Kind: protocol.NodeCompare, Node: 1, Other: 0, Try: out[0].Try}}, out)
		return l, out[0]
	}

	l, a := copied()
	l.Compared(1, a.Try, a.Other, true, true)
	assert.Equal(t, []protocol.NodeAction{{Kind: protocol.NodeDuplicate, Node: 1, Other: 0}}, l.out())
	assert.Zero(t, l.Duplicate(1))
	assert.False(t, l.Check(l.now, 1, 1))
	assert.Empty(t, l.out())
	l.Down(l.now, 0)
	l.now = l.now.Add(guardTime + 1)
	assert.False(t, l.Check(l.now, 1, 1))
	assert.Equal(t, []protocol.NodeAction{{Kind: protocol.NodeReconnect, Node: 1}}, l.out(), "the other address has left the server")
	l.Connect(l.now, 1, "")
	assert.Equal(t, -1, l.Duplicate(1))
	assert.True(t, l.Check(l.now, 1, 1))

	l, a = copied()
	l.Compared(1, a.Try, a.Other, false, true)
	assert.Equal(t, protocol.NodeMark, l.out()[0].Kind)

	l, a = copied()
	l.Compared(1, a.Try, a.Other, false, false)
	assert.Empty(t, l.out())
	assert.False(t, l.Check(l.now, 1, 1))
	assert.Equal(t, protocol.NodeCompare, l.out()[0].Kind, "it is tried again")
}

// The other address reaches another server while the two are compared: nothing
// is known of this one then, which has lost nothing.
func TestAddressThatMovesWhileItIsCompared(t *testing.T) {
	t.Parallel()
	l := newLives(2)
	l.connected(t, "", 1)
	l.Connect(l.now, 1, "")
	l.Show(l.now, 1, 1)
	l.Up(l.now, 1)
	a := l.out()[0]
	l.Down(l.now, 0)
	l.Connect(l.now, 0, "")
	l.Compared(1, a.Try, a.Other, false, true)
	assert.Empty(t, l.out())
	assert.False(t, l.Check(l.now, 1, 1))
	assert.Empty(t, l.out(), "there is nothing to compare with yet")
	l.Show(l.now, 0, 7)
	assert.False(t, l.Check(l.now, 1, 1), "leases of the server under the other address may still run")
	l.now = l.now.Add(guardTime + 1)
	l.Connect(l.now, 1, "")
	assert.True(t, l.Check(l.now, 1, 1))
}

// An address shows the incarnation that another one has left a guard time ago.
// It reaches a copy, perhaps.
func TestIncarnationThatAnotherAddressHasLeft(t *testing.T) {
	t.Parallel()
	leftBehind(t, protocol.Rules{})
}

func leftBehind(t assert.TestingT, rules protocol.Rules) {
	for _, elsewhere := range []bool{false, true} {
		l := newLivesWith(2, rules)
		l.connected(t, "", 1)
		l.Down(l.now, 0)
		l.Connect(l.now, 1, "")
		l.Show(l.now, 1, 1)
		if elsewhere {
			l.Connect(l.now, 0, "")
			l.Show(l.now, 0, 7)
		}
		l.out()
		l.now = l.now.Add(guardTime + 1)
		assert.False(t, l.Check(l.now, 1, 1))
		out := l.out()
		if assert.Len(t, out, 1) {
			assert.Equal(t, protocol.NodeMark, out[0].Kind)
			assert.EqualValues(t, 1, out[0].Inc)
		}
		assert.Zero(t, l.Voting(1))
	}
}

// A node whose clock has jumped begins another incarnation.
func TestNodeWhoseClockJumped(t *testing.T) {
	t.Parallel()
	l := newLives(1)
	l.connected(t, "run", 1)
	l.ClockJumped(0)
	a := l.out()[0]
	assert.Equal(t, protocol.NodeAction{Kind: protocol.NodeMark, Node: 0, Inc: 1, Try: a.Try}, a)
	assert.False(t, l.Check(l.now, 0, 1), "an answer that was under way")
	l.Marked(l.now, 0, a.Try, 0, false)
	assert.True(t, l.Check(l.now, 0, 1), "the next answer asks for it again")
	l.ClockJumped(0)
	a = l.out()[0]
	l.Marked(l.now, 0, a.Try, 2, true)
	assert.Equal(t, []protocol.NodeAction{{Kind: protocol.NodeVotes, Node: 0}, {Kind: protocol.NodeAsk, Node: 0}, {Kind: protocol.NodeRepair, Node: 0}}, l.out())
	assert.True(t, l.Check(l.now, 0, 2))
}

// wired is an Incarnations of addresses whose servers do not name their runs,
// and what each address reaches.
type wired struct {
	*lives
	at   []int                  // per address: its server
	incs []protocol.Incarnation // per server
	next protocol.Incarnation
}

func newWired(t assert.TestingT, rules protocol.Rules, addresses int) *wired {
	w := &wired{lives: newLivesWith(addresses, rules), next: 100}
	for i := range addresses {
		w.at = append(w.at, i)
		w.incs = append(w.incs, protocol.Incarnation(i+1))
		w.reach(i, i)
	}
	w.pass(0)
	for i := range addresses {
		assert.NotZero(t, w.Voting(i))
	}
	return w
}

// reach has an address begin a connection to a server.
func (w *wired) reach(i, server int) {
	w.at[i] = server
	w.Connect(w.now, i, "")
	w.Show(w.now, i, w.incs[server])
	w.Up(w.now, i)
}

// pass lets time pass, in which each address is asked again and again, and does
// what is to be done.
func (w *wired) pass(d time.Duration) {
	for end := w.now.Add(d); w.now <= end; w.now = w.now.Add(guardTime / 16) {
		for i, server := range w.at {
			if server >= 0 {
				w.Check(w.now, i, w.incs[server])
			}
		}
		for _, a := range w.out() {
			inc := &w.incs[w.at[a.Node]]
			switch a.Kind {
			case protocol.NodeMark:
				if w.next++; a.Inc == 0 || a.Inc == *inc {
					*inc = w.next
				}
				w.Marked(w.now, a.Node, a.Try, *inc, true)
			case protocol.NodeCompare:
				w.Compared(a.Node, a.Try, a.Other, w.at[a.Node] == w.at[a.Other], w.at[a.Other] >= 0)
			case protocol.NodeReconnect:
				w.reach(a.Node, w.at[a.Node])
			}
		}
	}
}

// down has the connection of an address end.
func (w *wired) down(i int) {
	w.at[i] = -1
	w.Down(w.now, i)
}

// Two addresses that change places both vote again.
func TestAddressesThatChangePlaces(t *testing.T) {
	t.Parallel()
	changedPlaces(t, protocol.Rules{})
}

func changedPlaces(t assert.TestingT, rules protocol.Rules) {
	w := newWired(t, rules, 2)
	w.down(0)
	w.down(1)
	w.reach(0, 1)
	w.reach(1, 0)
	assert.Zero(t, w.Voting(0))
	assert.Zero(t, w.Voting(1))
	w.pass(4 * guardTime)
	assert.NotZero(t, w.Voting(0))
	assert.NotZero(t, w.Voting(1))
}

// A server votes under an address though another one, which shares the server
// of a third address now, has voted for it before.
func TestServerOfAnAddressThatIsShared(t *testing.T) {
	t.Parallel()
	w := newWired(t, protocol.Rules{}, 3)
	w.reach(1, 0)
	w.pass(0)
	assert.Zero(t, w.Duplicate(1))
	w.reach(2, 1)
	w.pass(4 * guardTime)
	assert.NotZero(t, w.Voting(0))
	assert.Zero(t, w.Voting(1))
	assert.NotZero(t, w.Voting(2))
}

// A server that another address votes for by now keeps that vote when the first
// address comes back.
func TestServerThatChangesItsAddress(t *testing.T) {
	t.Parallel()
	changedOwner(t, protocol.Rules{})
}

func changedOwner(t assert.TestingT, rules protocol.Rules) {
	w := newWired(t, rules, 2)
	w.down(1)
	w.pass(guardTime)
	w.reach(0, 1)
	w.pass(0)
	assert.NotZero(t, w.Voting(0))
	w.reach(1, 1)
	w.pass(0)
	assert.Zero(t, w.Duplicate(1))
	w.reach(0, 1) // its connection breaks
	w.pass(0)
	assert.NotZero(t, w.Voting(0))
	assert.Zero(t, w.Voting(1))
}
