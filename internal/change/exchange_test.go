package change_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file tests what an Exchange decides: what has become of it, what it
// proposes next, and which members count for that.

// entering is a change that replaces members of the set ABC by new nodes.
func entering(add, remove string) (ch change.Goal) {
	for _, a := range strings.Split(add, "") {
		ch.Add = append(ch.Add, nodeset.Member{Identity: "new" + a, Addr: a})
	}
	ch.Remove = strings.Split(remove, "")
	return ch
}

// decided is an Exchange for which c was decided at a time, and which the given
// members have moved to since.
func decided(e change.Exchange, now protocol.Time, c *nodeset.Configuration, moved ...int) *change.Exchange {
	e.Decided(c)
	serve(&e, now, moved...)
	return &e
}

// serve has members be seen to serve what was decided, twice: a majority of
// them does so at one moment.
func serve(e *change.Exchange, now protocol.Time, members ...int) {
	for range 2 {
		for _, i := range members {
			e.Moved(now, now, i, true)
		}
	}
}

func TestOutcomeOfAnExchange(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	goal := entering("D", "C")
	_, _, done := replaced(set)
	for what, of := range map[string]struct {
		e       change.Exchange
		c       *nodeset.Configuration
		moved   []int
		outcome change.ExchangeOutcome
	}{
		"one member of three serves the new set": {change.Exchange{Goal: goal}, done,
			[]int{0}, change.ExchangeGoesOn},
		"two do": {change.Exchange{Goal: goal}, done,
			[]int{0, 2}, change.ExchangeDone},
		"it was finished before it was given up": {change.Exchange{Goal: goal, Undo: true},
			done, []int{0, 2}, change.ExchangeDone},
		"nothing was under way": {change.Exchange{}, set, []int{0, 1}, change.ExchangeDone},
		"the change has not begun": {change.Exchange{Goal: goal}, set,
			[]int{0, 1}, change.ExchangeGoesOn},
		"it was given up before it has begun": {change.Exchange{Goal: goal, Undo: true},
			set, []int{0, 1}, change.ExchangeUndone},
		"a change of another set makes no sense": {change.Exchange{Goal: change.Goal{Remove: []string{"A",
			"B", "C"}}}, set, []int{0, 1}, change.ExchangeUnfit},
		"that is not said before the set is served": {change.Exchange{Goal: change.Goal{Remove: []string{"A",
			"B", "C"}}}, set, []int{0}, change.ExchangeGoesOn},
		"what is under way is ended, and is not yet": {change.Exchange{}, change.Begin(set, goal, ballot(2)),
			[]int{0, 1, 2, 3}, change.ExchangeGoesOn},
	} {
		assert.Equal(t, of.outcome, decided(of.e, 1, of.c, of.moved...).Outcome(), what)
	}
	assert.Equal(t, change.ExchangeGoesOn, new(change.Exchange).Outcome(), "no configuration is known")
}

// A majority is more than half: one of two members does not serve the new set,
// and one of two does not begin the wait.
func TestHalfOfTheMembersIsNoMajority(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B")
	assert.False(t, decided(change.Exchange{}, 1, set, 0).Over())
	assert.True(t, decided(change.Exchange{}, 1, set, 0, 1).Over())

	joint := change.Begin(set, change.Goal{Remove: []string{"B"}}, ballot(2))
	require.Equal(t, nodeset.Jointly, joint.Stage, "no node has to learn")
	e := decided(change.Exchange{}, 1, joint, 0)
	e.Looked(0, true, true)
	late := protocol.Time(2 * exchangeWait)
	assert.False(t, e.Next(late), "B may still serve the set of before")
	assert.Equal(t, exchangeWait, e.Left(late))
	serve(e, late, 0, 1)
	assert.True(t, e.Next(late.Add(exchangeWait)))
}

// The change was begun by this client, and another one has given it up: it is
// not begun again.
func TestAChangeThatAnotherClientGaveUpIsOver(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	learning := change.Begin(set, entering("D", "C"), ballot(2))
	e := decided(change.Exchange{Goal: entering("D", "C")}, 1, learning)
	assert.True(t, e.Mine())
	undone := change.Undo(learning, ballot(3))
	e.Decided(undone)
	assert.False(t, e.Mine(), "nothing is under way")
	e.Moved(2, 2, 0, true)
	e.Moved(2, 2, 1, true)
	assert.Equal(t, change.ExchangeUndone, e.Outcome())
	next, ask := e.Propose(3, ballot(4))
	assert.Nil(t, next)
	assert.False(t, ask)
}

// The change that is under way is this client's only if the same nodes enter
// and leave.
func TestAnotherChangeIsNotMine(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	underWay := change.Begin(set, entering("D", "C"), ballot(2))
	for what, goal := range map[string]change.Goal{
		"a member that stays is no node that enters": {Add: []nodeset.Member{{Identity: "b", Addr: "B"}}},
		"nor is a member that stays one that leaves": {Remove: []string{"A"}},
		"one node enters that the other does not":    entering("E", "C"),
	} {
		assert.False(t, decided(change.Exchange{Goal: goal}, 1, underWay).Mine(), what)
	}
	assert.True(t, decided(change.Exchange{Goal: entering("D", "C")}, 1, underWay).Mine())
}

// A set that no majority of its members serves yet is not the set to begin
// with: another client may know what follows it.
func TestAChangeBeginsWhenItsSetIsServed(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	e := decided(change.Exchange{Goal: entering("D", "C")}, 1, set, 0)
	next, ask := e.Propose(1, ballot(2))
	assert.Nil(t, next)
	assert.True(t, ask)
	e.Moved(1, 1, 1, true)
	next, ask = e.Propose(2, ballot(2))
	require.NotNil(t, next)
	assert.True(t, ask)
	assert.Equal(t, nodeset.Learning, next.Stage)
}

// A change that was proposed may have been decided, though the answer did not
// come. It is given up when the register was read since.
func TestWhatWasProposedIsReadBeforeItIsGivenUp(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	e := decided(change.Exchange{Goal: entering("D", "C")}, 1, set, 0, 1)
	e.Read()
	assert.False(t, e.Mine(), "nothing was proposed")
	next, _ := e.Propose(1, ballot(2))
	require.NotNil(t, next)
	assert.True(t, e.Mine())
	e.Undo = true
	for range 3 {
		assert.Equal(t, change.ExchangeGoesOn, e.Outcome())
		undo, ask := e.Propose(2, ballot(3))
		assert.Nil(t, undo)
		assert.True(t, ask)
	}
	e.Read()
	assert.Equal(t, change.ExchangeUndone, e.Outcome())
	assert.False(t, e.Mine())

	e = decided(change.Exchange{Goal: entering("D", "C")}, 1, set, 0, 1)
	_, _ = e.Propose(1, ballot(2))
	e.Undo = true
	e.Decided(next)
	undo, _ := e.Propose(3, ballot(3))
	require.NotNil(t, undo, "it was decided")
	assert.Equal(t, nodeset.Stable, undo.Stage)
}

// What is given up has been read for the configuration that counts now, in each
// round until it was.
func TestWhatIsGivenUpIsReadInEachRound(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	e := decided(change.Exchange{Undo: true}, 1, set, 0)
	asked := func() (ask bool) {
		next, ask := e.Propose(1, ballot(2))
		require.Nil(t, next)
		return ask
	}
	assert.True(t, asked(), "the first of eight rounds")
	assert.False(t, asked(), "one member of three serves the set")
	e.Moved(1, 1, 1, true)
	assert.True(t, asked())
	assert.True(t, asked())
	e.Read()
	require.Equal(t, change.ExchangeUndone, e.Outcome())
	assert.False(t, asked())

	later := change.Undo(change.Begin(set, entering("D", "C"), ballot(3)), ballot(4))
	e.Decided(later)
	e.Moved(2, 2, 0, true)
	e.Moved(2, 2, 1, true)
	assert.Equal(t, change.ExchangeGoesOn, e.Outcome(), "the register of another configuration was read")
}

// A change that takes an address away is over when clients have had half a
// guard time to follow. One that takes none away is over at once.
func TestAChangeIsOverWhenClientsHaveFollowed(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	moves := change.Goal{Move: []nodeset.Member{{Identity: set.Members[0].Identity, Addr: "X"}}}
	const now, half = protocol.Time(time.Hour), 10 * time.Second
	for what, ch := range map[string]change.Goal{"a member leaves": {Remove: []string{"C"}}, "it moves": moves} {
		e := change.Exchange{Goal: ch}
		next := change.Begin(set, ch, ballot(2))
		e.Decided(set)
		if next.Stage != nodeset.Stable {
			e.Decided(next)
			next = change.Finish(next, ballot(3))
		}
		e.Decided(next)
		assert.Equal(t, half, e.Follows(now.Add(time.Minute)), "%s: no majority serves it yet", what)
		e.Moved(now.Add(time.Minute), now, 0, true)
		e.Moved(now.Add(time.Minute), now, 1, true)
		e.Propose(now.Add(time.Minute+half-1), ballot(4))
		assert.Equal(t, change.ExchangeGoesOn, e.Outcome(), what)
		e.Propose(now.Add(time.Minute+half), ballot(4))
		assert.Equal(t, change.ExchangeDone, e.Outcome(), what)
	}

	learning := change.Begin(set, entering("D", "C"), ballot(2))
	e := change.Exchange{Undo: true}
	e.Decided(learning)
	e.Decided(change.Undo(learning, ballot(3)))
	serve(&e, now, 0, 1)
	assert.True(t, e.Over(), "D has left, which no client needs")
}

// A member of the new set counts for what follows if it serves the present
// configuration, votes and is caught up.
func TestWhichMembersCountForTheNext(t *testing.T) {
	t.Parallel()
	learning := change.Begin(setOf(1, "A"), entering("D", "A"), ballot(2))
	for _, c := range []*nodeset.Configuration{learning, change.Join(learning, ballot(3))} {
		for lacks := range 4 {
			e := decided(change.Exchange{}, 1, c, 0)
			e.Looked(0, false, false) // A leaves: what it says of itself does not matter
			if lacks != 0 {
				serve(e, 1, 1)
			}
			e.Looked(1, lacks != 1, lacks != 2)
			assert.Equal(t, lacks == 3, e.Next(protocol.Time(2*exchangeWait)), "%v: without %d", c.Stage, lacks)
		}
	}
	e := decided(change.Exchange{}, 1, learning, 1)
	e.Looked(1, true, true)
	assert.False(t, e.Next(protocol.Time(2*exchangeWait)),
		"the set of before has not moved: D has not learnt from it")
}

// A new node that answers again is not given up, and without Patience no node
// is. GaveUp says what was so when it was.
func TestPatienceWithNewNodes(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	goal := entering("D", "C")
	learning := change.Begin(setOf(1, "A", "B", "C"), goal, ballot(2))
	at := func(d time.Duration) protocol.Time { return protocol.Time(1).Add(d) }
	e := decided(change.Exchange{Goal: goal, Patience: patience}, 1, learning)
	e.Silent(1, 3)
	e.Looked(3, false, false)
	assert.False(t, e.Awaits(3))
	e.Propose(at(2*patience), ballot(3))
	assert.False(t, e.Undo, "D answers")

	e.Silent(at(2*patience), 3)
	e.Propose(at(4*patience), ballot(3))
	assert.True(t, e.Undo)
	e.Propose(at(9*patience), ballot(3))
	_, silent := e.GaveUp()
	assert.Equal(t, 2*patience, silent)

	e = decided(change.Exchange{Goal: goal}, 1, learning)
	e.Silent(1, 3)
	e.Propose(at(time.Hour), ballot(3))
	assert.False(t, e.Undo)
}

// A set has 31 members at most while it is exchanged: one number is free.
func TestASetIsBounded(t *testing.T) {
	t.Parallel()
	addrs := strings.Split("ABCDEFGHIJKLMNOPQRSTUVWXYZabcde", "")
	full := setOf(1, addrs...)
	assert.False(t, change.Fits(full, entering("f", "A")), "there would be 32 members")
	assert.True(t, change.Fits(setOf(1, addrs[:30]...), entering("f", "A")))
}

// A guard time of at most twice the skew leaves no time for a lease.
func TestAGuardTimeThatNoLeaseFitsIsRefused(t *testing.T) {
	t.Parallel()
	shared := func(guard time.Duration) change.Goal {
		return change.Goal{Shared: &nodeset.Shared{Guard: guard, Retention: time.Hour, Skew: time.Second}}
	}
	assert.False(t, change.Fits(setOf(1, abc...), shared(2*time.Second)))
	assert.True(t, change.Fits(setOf(1, abc...), shared(3*time.Second)))
}
