package nodeset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

const day = "19a00000000" // milliseconds, as in a ballot

func ballot(n int) nodeset.Ballot { return nodeset.Ballot(fmt.Sprintf("%s%08x", day, n)) }

// setOf is a first configuration of some addresses, proposed under ballot n.
func setOf(n int, addrs ...string) *nodeset.Configuration {
	settings := nodeset.Shared{Guard: 20 * time.Second, Retention: 5 * time.Minute}
	stamp := nodeset.StampOf(1, ballot(n))
	c := &nodeset.Configuration{Stamp: stamp, Origin: stamp, Now: settings, Next: settings, Last: len(addrs) - 1}
	for i, a := range addrs {
		c.Members = append(c.Members, nodeset.Member{Number: i, Identity: fmt.Sprintf("%s-%d", a, n), Addr: a})
	}
	return c
}

// replaced is the set ABC of which C is being replaced by D.
func replaced(set *nodeset.Configuration) (learning, joint, done *nodeset.Configuration) {
	learning = change.Begin(set, change.Goal{Add: []nodeset.Member{{Identity: "new", Addr: "D"}}, Remove: []string{"C"}}, ballot(2))
	joint = change.Join(learning, ballot(3))
	return learning, joint, change.Finish(joint, ballot(4))
}

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

// A node keeps what is of a lease for as long as that may run, whatever
// retention was recorded.
func TestRetentionCoversTheGuardTime(t *testing.T) {
	t.Parallel()
	c := nodeset.Configuration{Now: nodeset.Shared{Guard: 7, Retention: 2}, Next: nodeset.Shared{Guard: 5, Retention: 3}}
	assert.Equal(t, time.Duration(7), c.Retention())
	c.Next.Retention = 9
	assert.Equal(t, time.Duration(9), c.Retention())
}

func TestConfigurationAsText(t *testing.T) {
	t.Parallel()
	c := setOf(7, "10.0.0.1:6379", "/run/a b%20.sock", "[::1]:6379")
	c.Next.Guard, c.Next.Skew = time.Minute, time.Millisecond
	for i := range c.Members {
		c.Members[i].Identity = fmt.Sprint("id", i)
	}
	got, ok := nodeset.ParseConfiguration(c.String())
	require.True(t, ok)
	assert.Equal(t, c, got)
	assert.Equal(t, time.UnixMilli(0x19a00000000), c.Stamp.Since())
	head, b := " 1 1 1 1 1 1 1 s ", string(c.Stamp)
	_, ok = nodeset.ParseConfiguration(b + head + b + " 1 2 0s i a 1s j b")
	require.True(t, ok)
	for _, bad := range []string{
		"", "x", "0." + string(ballot(1)) + head + b + " 1 1 0s i a", b + head + "x 1 1 0s i a", b + head + b + " 32 1 0s i a", b + head + b + " 1 0",
		b + head + b + " 1 2 0s i a", b + head + b + " 1 2 0s i a 0s j b", b + head + b + " 1 2 0s i a 1s i b", b + head + b + " 1 2 0s i a 1s j a",
		b + head + b + " 1 1 0l i a", b + head + b + " 1 1 0x i a", b + head + b + " 1 1 32s i a", b + head + b + " 1 1 s i a",
		b + " 2 1 1 1 1 1 1 s " + b + " 1 1 0s i a", b + " 1 -1 1 1 1 1 1 s " + b + " 1 1 0s i a", b + " 1 1 1 1 1 1 1 l " + b + " 1 1 0e i a",
	} {
		_, ok := nodeset.ParseConfiguration(bad)
		assert.False(t, ok, bad)
	}
	n := recordedAt(c, "[::1]:6379")
	again, ok := nodeset.ParseNodeSet(n.String())
	require.True(t, ok)
	assert.Equal(t, n, again)
	assert.Equal(t, nodeset.Layout, nodeset.LayoutOf(n.String()))
	assert.Equal(t, 2, nodeset.LayoutOf("0 0 c id "+b+" 2 whatever a later version writes"))
	for _, bad := range []string{"", "0 0 - - ", "0 0 c id x 2", "0 0 c id " + b + " x"} {
		assert.Zero(t, nodeset.LayoutOf(bad), bad)
	}
	assert.Positive(t, nodeset.StampOf(10, ballot(1)).Compare(nodeset.StampOf(9, ballot(2))), "epochs are numbers")
	assert.Positive(t, nodeset.StampOf(1, ballot(2)).Compare(nodeset.StampOf(1, ballot(1))))
	assert.Negative(t, nodeset.Stamp("").Compare(c.Stamp))
	later := nodeset.NewBallot(time.UnixMilli(5), 0, ballot(9))
	assert.Greater(t, later, ballot(9), "whatever the clock shows")
}

// What a node shows is text of any kind: it ends no process, and what is read
// of it is what would be written. A client that finds it at each of its nodes
// goes on.
func FuzzParseConfiguration(f *testing.F) {
	learning, joint, done := replaced(setOf(1, "A", "B", "C"))
	for _, c := range []*nodeset.Configuration{learning, joint, done} {
		n := recordedAt(c, "A")
		f.Add(n.String())
		n.Phase = nodeset.SetAccepted
		f.Add(n.String())
	}
	f.Add("0 0 - life ")
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := nodeset.ParseNodeSet(text)
		if !ok {
			return
		}
		again, ok := nodeset.ParseNodeSet(n.String())
		require.True(t, ok)
		n.Text, again.Text = "", ""
		require.Equal(t, n, again)
		n.Text = text
		for _, list := range [][]string{{"A"}, {"A", "B", "C"}} {
			w := newWorld()
			for _, addr := range list {
				w.at(addr).forged = &n
			}
			w.start(list...).settle(t)
		}
	})
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
		{"with a node that is no member", []string{"A", "B", "X"}, newWorld().serve(set, abc...), set, "ABC", false},
		{"the latest that q show", abc, newWorld().serve(joint, "A").serve(learning, "B").serve(set, "C"), learning, "BCD", false},
		{"what had left names what followed", []string{"A", "C"}, retired(newWorld().serve(done, "A", "B", "D"), set, done, "C"), done, "ABD", false},
		{"fewer than q know it", []string{"A", "X", "Y"}, newWorld().serve(set, abc...), nil, "", true},
		{"two sets", abc, newWorld().serve(set, "A").serve(setOf(2, "B", "D"), "B"), nil, "", true},
		{"q agree beside another set", abc, newWorld().serve(set, "A", "B").serve(setOf(2, "C", "D"), "C"), set, "AB", false},
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

// retired has the server of a member that has left keep what followed.
func retired(w *world, was, followed *nodeset.Configuration, addr string) *world {
	identity := was.Members[was.Place(addr)].Identity
	w.serve(was, addr).carryOut(w.at(addr), nodeset.RecordStep{Kind: nodeset.SetRetire, Identity: identity, Config: followed})
	return w
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
	assert.False(t, w.at("C").whole, "what C has accepted may be of a recording again: it begins as a blank server")

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

// One node that shows "epoch 99: A alone" changes nothing.
func oneNodeLeads(t assert.TestingT) {
	set := setOf(1, abc...)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	alone := setOf(1, "A", "X")
	alone.Stamp = nodeset.StampOf(99, ballot(99))
	for _, c := range []*nodeset.Configuration{alone, setOf(5, "A", "X")} {
		forged := recordedAt(c, "A")
		w.at("A").forged = &forged
		p.drop(0)
		p.settle(t)
		assert.Equal(t, set.Stamp, p.Stamp())
		assert.Equal(t, "BC", sorted(p.votes()))
		assert.False(t, p.dialled["X"], "no password goes there")
	}
}

// Registers that have one value of different versions prove nothing.
func versionsDiffer(t assert.TestingT) {
	set := setOf(1, abc...)
	learning, _, _ := replaced(set)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	w.put(set, learning, 1, "A").put(set, learning, 3, "B").lose("C")
	p.drop(2)
	assert.Equal(t, set.Stamp, p.settle(t).Stamp(), "C may have had another one of version 2")
	w.put(set, learning, 3, "A").lose("C")
	p.drop(2)
	assert.Equal(t, learning.Stamp, p.settle(t).Stamp())
	assert.Equal(t, "ABCD", sorted(p.votes()))
}

func TestAClientFollowsAMajority(t *testing.T) {
	t.Parallel()
	oneNodeLeads(t)
	versionsDiffer(t)
	set := setOf(1, abc...)
	learning, joint, done := replaced(set)
	follow := func(after func(w *world)) *party {
		w := newWorld().serve(set, abc...)
		p := w.start(abc...).settle(t)
		after(w)
		for i := range nodeset.Seed {
			p.drop(i)
		}
		return p.settle(t)
	}
	p := follow(func(w *world) { w.serve(learning, "A") })
	assert.Equal(t, set.Stamp, p.Stamp(), "one shows it, and it is in no register")
	assert.Equal(t, nodeset.SetAhead, p.fault("A"))
	p = follow(func(w *world) { w.serve(learning, "A").put(set, learning, 1, "A", "B") })
	assert.Equal(t, learning.Stamp, p.Stamp(), "one shows it, and a majority has it in its registers")
	assert.Equal(t, "ABCD", sorted(p.votes()), "those that are behind move, and D gets its place")
	p = follow(func(w *world) { w.serve(learning, "A").put(set, learning, 1, "B", "C") })
	assert.Equal(t, learning.Stamp, p.Stamp())
	p = follow(func(w *world) { w.serve(joint, "A").serve(learning, "B") })
	assert.Equal(t, learning.Stamp, p.Stamp(), "the latest that a majority shows")
	p = follow(func(w *world) { w.serve(done, "A", "B", "D") })
	assert.Equal(t, done.Stamp, p.Stamp())
	assert.Equal(t, "ABD", sorted(p.votes()))
	assert.NotContains(t, p.conns, 2, "C is let go of")
	kept := p.w.at("C").Set()
	assert.Equal(t, set.Stamp, kept.Stamp(), "C had shown nothing of what followed, so it was not used then")

	// The members are all exchanged: C, which is no member, keeps what
	// followed.
	w := newWorld().serve(set, abc...)
	p = w.start(abc...).settle(t)
	p.Decide(learning)
	p.settle(t)
	p.Decide(joint)
	p.settle(t)
	p.Decide(done)
	p.settle(t)
	kept = w.at("C").Set()
	assert.Equal(t, done.Stamp, kept.Stamp())
	_, marked := w.at("C").Incarnation()
	assert.False(t, marked, "it serves nothing")
	g := p.Group()
	assert.Equal(t, protocol.Quorums{Present: 0b1011}, g.Sets)
	assert.Equal(t, uint32(0b0100), g.Absent)
	assert.Equal(t, nodeset.SuccessorName(done.Stamp), g.Successor)
	assert.True(t, g.RestartJoining)
	assert.False(t, p.Group().RestartJoining, "it is said once")
	assert.Zero(t, g.Reassigned)
	assert.Equal(t, 10*time.Second, g.LongestTTL)

	// C is added once more, as a blank server.
	back := change.Begin(done, change.Goal{Add: []nodeset.Member{{Identity: "again", Addr: "C"}}}, ballot(6))
	p.Decide(back)
	assert.Equal(t, "ABCD", sorted(p.settle(t).votes()))
	assert.Equal(t, 4, back.Members[back.Place("C")].Number, "no number is given again before all others")
}

// A member that is removed is met as its client learns that it was.
func TestAMemberShowsThatItHasLeft(t *testing.T) {
	t.Parallel()
	set := setOf(1, abc...)
	_, _, done := replaced(set)
	w := newWorld().serve(set, abc...)
	p := w.start(abc...).settle(t)
	retired(w, set, done, "C").serve(done, "A", "B", "D")
	for _, i := range []int{0, 2} {
		p.drop(i)
		p.connect(i)
	}
	assert.Equal(t, done.Stamp, p.settle(t).Stamp())
	assert.Equal(t, "ABD", sorted(p.votes()))
}

// A client that sleeps through changes asks its list.
func asksItsList(t assert.TestingT) {
	set := setOf(1, "A", "B")
	later := change.Finish(change.Begin(set, change.Goal{Remove: []string{"A"}}, ballot(2)), ballot(3))
	after := change.Finish(change.Join(change.Begin(later, change.Goal{Add: []nodeset.Member{{Identity: "a", Addr: "A"}}, Remove: []string{"B"}}, ballot(4)), ballot(5)), ballot(6))
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
		assert.False(t, p.Due(), "no call waits")
		p.Want()
		require.True(t, p.Due())
		r := p.recording(false, nodeset.SetRetire)
		require.Equal(t, nodeset.RecordDone, r.Outcome)
		assert.Equal(t, "ABC", sorted(p.settle(t).votes()))
		assert.False(t, p.w.at("A").Recovering(p.w.now) == 0, "its guard time has begun")
	}
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
