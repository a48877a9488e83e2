package nodeset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// recordedAt is what the node of that address has recorded.
func recordedAt(c *nodeset.Configuration, addr string) nodeset.NodeSet {
	return recordedAs(c, c.Members[c.Place(addr)].Identity)
}

func recordedAs(c *nodeset.Configuration, identity string) nodeset.NodeSet {
	n := nodeset.NodeSet{Promised: ballot(0), Phase: nodeset.SetRecorded, Identity: identity, Config: c}
	n.Text = n.String()
	return n
}

// acceptedAt is what it has accepted under ballot n.
func acceptedAt(c *nodeset.Configuration, addr string, b int) nodeset.NodeSet {
	n := recordedAt(c, addr)
	n.Phase, n.Accepted, n.Promised = nodeset.SetAccepted, ballot(b), ballot(b)
	n.Text = n.String()
	return n
}

var abc = []string{"A", "B", "C"}

// A client counts on what q nodes of its list show: the latest that q show, or
// what followed it. Fewer are not enough, and one node leads no client
// elsewhere.
func findsByQ(t assert.TestingT) {
	forged := recordedAt(setOf(9, "A", "X", "Y"), "A")
	w := newWorld().serve(setOf(1, abc...), abc...)
	w.at("A").forged = &forged
	w.at("C").up = false
	p := w.start(abc...).settle(t)
	assert.Nil(t, p.Config(), "A and B do not agree")
	assert.Equal(t, nodeset.SetFits, p.Wrong().Fault, "C may agree with one of them yet")
	assert.False(t, p.dialled["X"])
}

func TestAClientFindsItsSet(t *testing.T) {
	t.Parallel()
	findsByQ(t)
	set := setOf(1, abc...)
	learning, joint, done := replaced(set)
	for _, of := range []struct {
		what    string
		list    []string
		world   *world
		counts  *nodeset.Configuration
		votes   string
		refused bool
	}{
		{"its list", abc, newWorld().serve(set, abc...), set, "ABC", false},
		{"in another order", []string{"C", "A", "B"}, newWorld().serve(set, abc...), set, "ABC", false},
		{"a list of one", []string{"B"}, newWorld().serve(set, abc...), set, "ABC", false},
		{"with a node that is no member", []string{"A", "B", "X"},
			newWorld().serve(set, abc...), set, "ABC", false},
		{"the latest that q show", abc, newWorld().serve(joint, "A").serve(learning, "B").serve(set, "C"), learning,
			"BCD", false},
		{"what had left names what followed", []string{"A", "C"},
			retired(newWorld().serve(done, "A", "B", "D"), set, done, "C"), done, "ABD", false},
		{"fewer than q know it", []string{"A", "X", "Y"}, newWorld().serve(set, abc...), nil, "", true},
		{"two sets", abc, newWorld().serve(set, "A").serve(setOf(2, "B", "D"), "B"), nil, "", true},
		{"q agree beside another set", abc,
			newWorld().serve(set, "A", "B").serve(setOf(2, "C", "D"), "C"), set, "AB", false},
		{"nothing is recorded", abc, newWorld(), nil, "", false},
	} {
		p := of.world.start(of.list...).settle(t)
		assert.Equal(t, of.counts, p.Config(), of.what)
		assert.Equal(t, of.votes, sorted(p.votes()), of.what)
		assert.Equal(t, of.refused, p.Wrong().Fault == nodeset.SetWrong, of.what)
		if p.Config() == nil {
			assert.Equal(t, protocol.Group{}, p.Group(), of.what)
		}
	}
}

func sorted(addrs []string) string {
	slices.Sort(addrs)
	return strings.Join(addrs, "")
}

// Two addresses of one server, or a copy of a member's data, have no second
// vote.
func bindsByIdentity(t assert.TestingT) {
	set := setOf(1, abc...)
	w := newWorld().serve(set, abc...)
	w.keep(w.at("C"), recordedAt(set, "A"))
	p := w.start(abc...).settle(t)
	assert.Equal(t, "AB", sorted(p.votes()))
	assert.Equal(t, nodeset.SetOther, p.fault("C"))
}

func TestAServerCountsByItsIdentity(t *testing.T) {
	t.Parallel()
	bindsByIdentity(t)
	set := setOf(1, abc...)
	w := newWorld().serve(set, "A", "B").serve(setOf(2, "C", "D"), "C")
	assert.Equal(t, nodeset.SetForeign, w.start(abc...).settle(t).fault("C"))
	w = newWorld().serve(set, "A", "B")
	w.keep(w.at("C"), acceptedAt(setOf(3, "C", "E"), "C", 3))
	assert.Equal(t, nodeset.SetPending, w.start(abc...).settle(t).fault("C"))
	w = newWorld().serve(set, "A", "B")
	w.keep(w.at("C"), acceptedAt(set, "C", 3))
	assert.Equal(t, "ABC", sorted(w.start(abc...).settle(t).votes()))
	assert.False(t, w.at("C").whole,
		"what C has accepted may be of a recording again: it begins as a blank server")

	// Servers that change their addresses have no vote until they change back.
	w = newWorld().serve(set, abc...)
	w.servers["A"], w.servers["B"] = w.servers["B"], w.servers["A"]
	p := w.start(abc...).settle(t)
	assert.Equal(t, "C", sorted(p.votes()))
	w.servers["A"], w.servers["B"] = w.servers["B"], w.servers["A"]
	p.drop(0)
	p.drop(1)
	assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
}

// An acceptance of another list is void once a node of that list is of this
// set.
func acceptanceIsVoid(t assert.TestingT) {
	w := newWorld().serve(setOf(1, abc...), "A", "B")
	w.keep(w.at("C"), acceptedAt(setOf(2, "B", "C"), "C", 2))
	p := w.start(abc...).settle(t)
	assert.Equal(t, "ABC", sorted(p.votes()), "C gets the place of C")
}

func TestAnAcceptanceIsVoid(t *testing.T) {
	t.Parallel()
	acceptanceIsVoid(t)
}

// A client that sleeps through changes asks its list.
func asksItsList(t assert.TestingT) {
	set := setOf(1, "A", "B")
	later := change.Finish(change.Begin(set, change.Goal{Remove: []string{"A"}}, ballot(2)), ballot(3))
	after := change.Finish(change.Join(change.Begin(later,
		change.Goal{Add: []nodeset.Member{{Identity: "a", Addr: "A"}}, Remove: []string{"B"}}, ballot(4)),
		ballot(5)), ballot(6))
	w := newWorld().serve(later, "B")
	p := w.start("A", "B").settle(t)
	p.Decide(later)
	w.serve(later, "B")
	p = w.start("B").settle(t)
	p.Relist([]string{"A"})
	p.settle(t)
	w.serve(after, "A").at("B").up = false
	for i := range p.conns {
		p.drop(i)
	}
	assert.Equal(t, after.Stamp, p.settle(t).Stamp())
}

func TestAClientWithoutAQuorumAsksItsList(t *testing.T) {
	t.Parallel()
	asksItsList(t)
}

// A newer list binds nothing. What is not in it is let go of.
func TestANewerList(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	w := newWorld().serve(set, abc...)
	p := w.start("X", "Y", "Z").settle(t)
	assert.Nil(t, p.Config())
	p.Relist(abc[:2])
	assert.Nil(t, p.Has(nodeset.Seed+2), "its connection ends later")
	assert.Equal(t, nodeset.SetRetired, p.Verdict(nodeset.Seed+2).Fault)
	assert.Equal(t, set.Stamp, p.settle(t).Stamp())
	for i := range p.conns {
		assert.Less(t, i, nodeset.Seed, "%s is asked no more", p.Addr(i))
	}
	p.Relist([]string{"X"})
	assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
}

// What a client knows of a number ends when it stands for another member.
func TestANumberThatIsGivenAgain(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	p.Group()
	later := *set
	later.Stamp, later.Members = nodeset.StampOf(90, ballot(9)), slices.Clone(set.Members)
	later.Members[0] = nodeset.Member{Number: 0, Identity: "D", Addr: "D"}
	w.serve(&later, "B", "C", "D")
	for i := range 3 {
		p.drop(i)
	}
	assert.Equal(t, "BCD", sorted(p.settle(t).votes()))
	assert.Equal(t, uint32(1), p.Group().Reassigned)
	assert.Zero(t, p.Group().Reassigned, "it is said once")
}

// Where each member has lost its data the client counts on no set, and the
// set's addresses are its list.
func TestASetThatAllHaveForgotten(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	for _, list := range [][]string{abc, {"C", "B", "A"}, {"A"}} {
		w := newWorld().serve(set, abc...)
		p := w.start(list...).settle(t)
		w.lose(abc...)
		for i := range 3 {
			p.drop(i)
		}
		p.settle(t)
		assert.Nil(t, p.Config())
		assert.ElementsMatch(t, abc, p.List())
		assert.False(t, p.Recorder.Due(), "no call waits")
		p.Recorder.Want()
		require.True(t, p.Recorder.Due())
		r := p.recording(false, nodeset.SetRetire)
		require.Equal(t, nodeset.RecordDone, r.Outcome)
		assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
		assert.False(t, p.w.at("A").Recovering(p.w.now) == 0, "its guard time has begun")
	}
}

// Others have recorded the set again before this client has met any of its
// servers without data. A connection to a server of another set ends at once,
// so the client never has two of them at a time.
func TestASetThatOthersHaveRecordedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld().serve(setOf(1, abc...), abc...)
	late := w.start(abc...).settle(t)
	for i := range abc {
		late.drop(i)
	}
	w.lose(abc...)
	p := w.start(abc...).settle(t)
	p.Recorder.Want()
	require.Equal(t, nodeset.RecordDone, p.recording(false, nodeset.SetRetire).Outcome)
	assert.Equal(t, "ABC", sorted(late.settle(t).votes()))
	assert.Equal(t, p.Config().Stamp, late.Config().Stamp)
}

// A client whose list has more addresses than its set has members lets go of
// the others as it forgets the set: its list is that of the members from then
// on.
func TestTheRestOfAListIsForgottenWithItsSet(t *testing.T) {
	t.Parallel()
	w := newWorld().serve(setOf(1, abc...), abc...)
	p := w.start("A", "B", "C", "D", "E").settle(t)
	w.lose(abc...)
	for i := range 3 {
		w.at(abc[i]).up = false
		p.drop(i)
	}
	p.settle(t)
	for _, i := range []int{3, 4} {
		require.NotNil(t, p.conns[nodeset.Seed+i], "it asks its list")
	}
	for _, a := range abc {
		w.at(a).up = true
	}
	p.settle(t)
	require.Nil(t, p.Config())
	assert.Equal(t, abc, p.List())
	for i := range p.conns {
		assert.Contains(t, abc, p.Addr(i), "connection %d", i-nodeset.Seed)
	}
}

// deciders returns the members that decide what follows.
func deciders(c *nodeset.Configuration) []nodeset.Member {
	return slices.DeleteFunc(slices.Clone(c.Members),
		func(m nodeset.Member) bool { return m.Role == nodeset.Enters })
}
