package change_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// replaced is the set ABC of which C is being replaced by D.
func replaced(set *nodeset.Configuration) (learning, joint, done *nodeset.Configuration) {
	learning = change.Begin(set, change.Goal{Add: []nodeset.Member{{Identity: "new", Addr: "D"}},
		Remove: []string{"C"}}, ballot(2))
	joint = change.Join(learning, ballot(3))
	return learning, joint, change.Finish(joint, ballot(4))
}

func TestConfigurationsOfAnExchangeAsText(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	learning, joint, done := replaced(set)
	for _, c := range []*nodeset.Configuration{set, learning, joint, done, change.Undo(joint, ballot(5))} {
		got, ok := nodeset.ParseConfiguration(c.String())
		require.True(t, ok, c)
		assert.Equal(t, c, got)
	}
	assert.Equal(t, []string{"A", "B", "D"}, done.Addrs())
	assert.Equal(t, set.Addrs(), change.Undo(joint, ballot(5)).Addrs())
	for _, bad := range []string{" middle ssl", " joint ss", " joint ssx", " stable sse", " joint"} {
		_, ok := nodeset.ParseConfiguration(set.String() + bad)
		assert.False(t, ok, bad)
	}
}

func TestAChangeThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	d := nodeset.Member{Identity: "new", Addr: "D"}
	for name, ch := range map[string]change.Goal{
		"nothing":                  {},
		"a node that is a member":  {Add: []nodeset.Member{{Identity: "new", Addr: "A"}}},
		"an identity of a member":  {Add: []nodeset.Member{{Identity: set.Members[1].Identity, Addr: "D"}}},
		"a node that is no member": {Remove: []string{"D"}},
		"no node is left":          {Remove: []string{"A", "B", "C"}},
		"one address twice":        {Add: []nodeset.Member{d, {Identity: "newer", Addr: "D"}}},
		"an address of no word":    {Add: []nodeset.Member{{Identity: "new", Addr: "D\u00a0E"}}},
		"one address for two": {Move: []nodeset.Member{{Identity: set.Members[0].Identity, Addr: "D"},
			{Identity: set.Members[1].Identity, Addr: "D"}}},
		"no node is left, named twice": {Remove: []string{"A", "B", "C", "A"}},
		"a node that comes and goes":   {Add: []nodeset.Member{d}, Remove: []string{"D"}},
	} {
		assert.False(t, change.Fits(set, ch), name)
	}
	assert.True(t, change.Fits(set, change.Goal{Add: []nodeset.Member{d}, Remove: []string{"C"}}))
	learning, _, _ := replaced(set)
	assert.False(t, change.Fits(learning, change.Goal{Remove: []string{"A"}}),
		"a second change begins after the first")
}

// A member gets one more address, or one alone. Only a change that takes an
// address away has clients follow, and the number of addresses is bounded.
func TestAddressesOfAMember(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	add := func(c *nodeset.Configuration, addr string, keep bool) change.Goal {
		return change.Goal{Move: []nodeset.Member{{Identity: c.Members[0].Identity, Addr: addr}}, Keep: keep}
	}
	goes := func(c *nodeset.Configuration, ch change.Goal) (next *nodeset.Configuration, follow time.Duration) {
		t.Helper()
		require.True(t, change.Fits(c, ch))
		next = change.Begin(c, ch, ballot(2))
		e := change.Exchange{Goal: ch}
		e.Decided(c)
		e.Decided(next)
		return next, e.Follows(0)
	}
	two, follow := goes(set, add(set, "A2", true))
	assert.Equal(t, []string{"A", "A2"}, two.Members[0].All())
	assert.Equal(t, nodeset.Stable, two.Stage)
	assert.Zero(t, follow, "nothing is waited for")
	assert.False(t, change.Fits(two, change.Goal{Add: []nodeset.Member{{Identity: "new", Addr: "A2"}}}),
		"it is a member's")
	assert.False(t, change.Fits(two,
		change.Goal{Move: []nodeset.Member{{Identity: two.Members[1].Identity, Addr: "A2"}}, Keep: true}))

	one, follow := goes(two, add(two, "A2", false))
	assert.Equal(t, []string{"A2"}, one.Members[0].All())
	assert.Equal(t, set.Guard()/2, follow)
	one, follow = goes(two, add(two, "A", false))
	assert.Equal(t, []string{"A"}, one.Members[0].All())
	assert.Equal(t, set.Guard()/2, follow, "of a further address, too")

	for _, addr := range []string{"A3", "A4"} {
		two, _ = goes(two, add(two, addr, true))
	}
	assert.False(t, change.Fits(two, add(two, "A5", true)), "more than MaxAddrs")
}

func TestQuorumsOfAnExchange(t *testing.T) {
	t.Parallel()
	learning, joint, done := replaced(setOf(1, "A", "B", "C"))
	assert.Equal(t, protocol.Majority(3), learning.Quorums(), "D learns")
	assert.Equal(t, protocol.Quorums{Present: 0b0111, Next: 0b1011}, joint.Quorums())
	assert.Equal(t, protocol.Quorums{Present: 0b1011}, done.Quorums(), "D has a number of its own")
}

// countsSilent reports whether the new set may count alone by a member that was
// caught up and does not answer any more.
func countsSilent(t assert.TestingT) {
	set := setOf(1, "A")
	joint := change.Join(change.Begin(set, change.Goal{Add: []nodeset.Member{{Identity: "b", Addr: "B"}},
		Remove: []string{"A"}}, ballot(2)), ballot(3))
	e := change.Exchange{}
	e.Decided(joint)
	for i := range 2 {
		serve(&e, 1, 0, i)
		e.Looked(i, true, true)
	}
	late := protocol.Time(2 * exchangeWait)
	e.Silent(late, 1)
	assert.False(t, e.Next(late), "it may have lost its data")
	e.Looked(1, true, true)
	assert.True(t, e.Next(late))
}

func TestAMemberThatIsSilentDoesNotCount(t *testing.T) {
	t.Parallel()
	countsSilent(t)
}

func TestTheNewSetCountsAloneAfterAGuardTime(t *testing.T) {
	t.Parallel()
	learning, joint, done := replaced(setOf(1, "A", "B", "C"))
	const guard = exchangeWait
	e := change.Exchange{}
	e.Decided(learning)
	for i := range 3 {
		serve(&e, 1, 0, i)
		e.Looked(i, true, true)
	}
	assert.False(t, e.Next(2), "D has not taken in anything")
	serve(&e, 2, 3)
	e.Looked(3, true, true)
	assert.True(t, e.Next(2))
	e.Decided(joint)
	assert.False(t, e.Next(protocol.Time(2*guard)), "no node has moved")
	for i := range 4 {
		serve(&e, protocol.Time(2*guard), 0, i)
		e.Looked(i, true, i < 2)
	}
	assert.False(t, e.Next(protocol.Time(3*guard-1)))
	assert.True(t, e.Next(protocol.Time(3*guard)))
	e.Looked(0, true, false)
	assert.False(t, e.Next(protocol.Time(3*guard)), "one of three is caught up")
	e.Decided(done)
	e.Moved(protocol.Time(3*guard), protocol.Time(3*guard), 0, true)
	assert.False(t, e.Over())
	e.Moved(protocol.Time(3*guard), protocol.Time(3*guard), 2, true)
	e.Propose(protocol.Time(4*guard), ballot(9))
	assert.True(t, e.Over())
}

// stepOf has each member serve what was decided, vote and be caught up.
func stepOf(e *change.Exchange, now protocol.Time, c *nodeset.Configuration) {
	e.Decided(c)
	for i := range c.Members {
		serve(e, now, 0, i)
		e.Looked(i, true, true)
	}
}

// A change is begun, finished, and then nothing is left to do. What another
// client left half-way is ended first.
func TestAnExchangeGoesThroughItsStages(t *testing.T) {
	t.Parallel()
	const guard, ballot = exchangeWait, nodeset.Ballot("0000000000000000009")
	set := setOf(1, "A", "B", "C")
	goal := change.Goal{Add: []nodeset.Member{{Identity: "idE", Addr: "E"}}, Remove: []string{"A"}}
	e := change.Exchange{Goal: goal}
	learning, _, _ := replaced(set)
	now := protocol.Time(1)
	var stages []nodeset.Stage
	for c := learning; c != nil; c, _ = e.Propose(now, ballot) {
		stages = append(stages, c.Stage)
		stepOf(&e, now, c)
		now = now.Add(guard)
	}
	assert.Equal(t, []nodeset.Stage{
		nodeset.Learning, nodeset.Jointly, nodeset.Stable, nodeset.Learning, nodeset.Jointly, nodeset.Stable,
	}, stages)
	assert.Equal(t, change.ExchangeDone, e.Outcome())

	// It is given up, in each stage.
	for _, joint := range []bool{false, true} {
		e := change.Exchange{Goal: goal}
		stepOf(&e, now, set)
		c, _ := e.Propose(now, ballot)
		stepOf(&e, now, c)
		if joint {
			c, _ = e.Propose(now, ballot)
			stepOf(&e, now, c)
		}
		e.Undo = true
		c, _ = e.Propose(now, ballot)
		assert.Equal(t, nodeset.Stable, c.Stage)
		assert.Equal(t, set.Addrs(), c.Addrs())
		stepOf(&e, now, c)
		assert.Equal(t, change.ExchangeUndone, e.Outcome())
		c, ask := e.Propose(now, ballot)
		assert.Nil(t, c)
		assert.False(t, ask)
	}

	e = change.Exchange{Goal: change.Goal{Remove: []string{"A", "B", "C"}}}
	stepOf(&e, now, set)
	assert.Equal(t, change.ExchangeUnfit, e.Outcome(), "no node is left")
}

// undoesWhatWasRead reports whether to give up what is under way is over before
// the register was read.
func undoesWhatWasRead(t assert.TestingT) {
	set := setOf(1, "A", "B", "C")
	e := change.Exchange{Undo: true}
	stepOf(&e, 1, set)
	assert.Equal(t, change.ExchangeGoesOn, e.Outcome(), "what no node shows may have been decided")
	next, ask := e.Propose(1, ballot(5))
	assert.Nil(t, next)
	assert.True(t, ask)
	e.Read()
	assert.Equal(t, change.ExchangeUndone, e.Outcome())
}

func TestWhatIsGivenUpWasRead(t *testing.T) {
	t.Parallel()
	undoesWhatWasRead(t)
}

// A change whose new node is silent for too long is given up by the client that
// began it, in each stage, and by no other one.
func TestAChangeWhoseNewNodeIsSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	goal := change.Goal{Add: []nodeset.Member{{Identity: "d", Addr: "D"}}}
	const patience = 20 * time.Second
	for _, joint := range []bool{false, true} {
		for _, mine := range []bool{false, true} {
			e := change.Exchange{Patience: patience, Goal: goal}
			if !mine {
				e.Goal = change.Goal{Remove: []string{"A"}}
			}
			c := change.Begin(set, goal, ballot(2))
			if joint {
				c = change.Join(c, ballot(3))
			}
			stepOf(&e, 1, c)
			e.Silent(5, 0) // A: it does not enter
			e.Silent(5, 3)
			e.Silent(9, 3)
			assert.True(t, e.Awaits(3))
			assert.False(t, e.Awaits(0))
			next, _ := e.Propose(protocol.Time(5).Add(patience), ballot(4))
			assert.Nil(t, next)
			next, ask := e.Propose(protocol.Time(6).Add(patience), ballot(4))
			k, silent := e.GaveUp()
			if !mine {
				assert.Nil(t, next)
				assert.Equal(t, -1, k)
				continue
			}
			require.NotNil(t, next)
			assert.True(t, ask)
			assert.Equal(t, set.Addrs(), next.Addrs())
			assert.Equal(t, 3, k)
			assert.Equal(t, patience+1, silent)
		}
	}
}

// The register is read now and then, though nothing is to be proposed.
func TestTheRegisterIsReadNowAndThen(t *testing.T) {
	t.Parallel()
	learning, _, _ := replaced(setOf(1, "A", "B", "C"))
	e := change.Exchange{}
	e.Decided(learning)
	asked := 0
	for range 16 {
		next, ask := e.Propose(1, ballot(4))
		assert.Nil(t, next)
		if ask {
			asked++
		}
	}
	assert.Equal(t, 2, asked)
}

func TestRegistersOfASuccession(t *testing.T) {
	t.Parallel()
	g := protocol.Group{Deciders: protocol.Majority(3), Successor: "quorate set 4.x"}
	for _, of := range []struct {
		why                string
		node               int
		name               string
		brings, succession bool
	}{
		{"a record is for every node", 3, "a record", true, false},
		{"what follows is for a node that decides it", 0, "quorate set 4.x", true, true},
		{"as nodes list it", 2, "quorate set 4.x}", true, true},
		{"and not for one that enters", 3, "quorate set 4.x", false, true},
		{"what followed before is for no node", 0, "quorate set 3.x", false, true},
	} {
		brings, succession := g.Brings(of.node, of.name)
		assert.Equal(t, of.brings, brings, of.why)
		assert.Equal(t, of.succession, succession, of.why)
	}
	brings, succession := (&protocol.Group{}).Brings(0, "quorate set 3.x")
	assert.True(t, brings && !succession, "a client without a set takes it for a record")
}
