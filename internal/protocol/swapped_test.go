package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

// A client that runs has met A, B and D of an exchanged set. A and D change
// their addresses with each other. Before, both were refused for good.
func TestServersChangeAddressesUnderAClient(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	_, _, done := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "D"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0, 1, 2}, recordedAt(done, "A"), recordedAt(done, "B"), recordedAt(done, "D"))
	require.Zero(t, m.Outside()&0b111)
	m.Out = nil
	for range 10 {
		for _, i := range []int{0, 2} {
			m.Down(i)
		}
		for _, x := range []struct {
			i    int
			addr string
		}{{0, "D"}, {2, "A"}} {
			v := m.Met(x.i, "run of "+x.addr, recordedAt(done, x.addr))
			if v.Fault != protocol.SetFits {
				m.Down(x.i)
			}
		}
	}
	assert.Zero(t, m.Outside()&0b111, "each of the three servers is used")
}

// staleGroup has D replace C, and be learning: it has no vote. C and D have
// each other's address. A client that starts then meets D at C's.
func staleGroup(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	learning, _, _ := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	meet(m, "r", []int{0, 1}, recordedAt(learning, "A"), recordedAt(learning, "B"))
	m.Others()
	counted, g := m.Config(), m.Group()
	m.Met(3, "run of C", recordedAt(learning, "C"))
	m.Met(2, "run of D", recordedAt(learning, "D"))
	m.Others()
	if counted == m.Config() {
		assert.Equal(t, g.Sets, m.Group().Sets, "the claims go on with a group that is not that of the members")
	}
}

func TestGroupFollowsWhatANumberStandsFor(t *testing.T) {
	t.Parallel()
	staleGroup(t, protocol.Rules{})
}

// A client whose list is of before has numbers beside its list for all members.
// Two of these have changed their addresses.
func TestServersBesideTheListChangeAddresses(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	ch := protocol.Change{Add: []protocol.Member{{Identity: "d", Addr: "D"}, {Identity: "e", Addr: "E"}, {Identity: "f", Addr: "F"}}, Remove: []string{"A", "B", "C"}}
	learning := set.Begin(ch, ballot(2))
	joint := learning.Join(ballot(3))
	done := joint.Finish(ballot(4))
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0}, recordedAt(joint, "A"))
	meet(m, "r", []int{5}, recordedAt(done, "F"))
	for range 5 {
		for _, x := range []struct {
			i    int
			addr string
		}{{3, "E"}, {4, "D"}, {5, "F"}, {6, "D"}} {
			if x.i < 6 && m.Wants(x.i) {
				m.Met(x.i, "run of "+x.addr, recordedAt(done, x.addr))
			}
		}
	}
	out := m.Outside()
	assert.Zero(t, m.Group().Sets.All()&out, "each of the three servers is used")
}

// C left and came back with another identity, while this client did not reach
// it. So C's address has shown what is no member at all.
func TestCopyOfAMemberThatCameBack(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	without := set.Begin(protocol.Change{Remove: []string{"C"}}, ballot(2))
	for without.Stage != protocol.Stable {
		if without.Stage == protocol.Learning {
			without = without.Join(ballot(3))
		} else {
			without = without.Finish(ballot(4))
		}
	}
	again := without.Begin(protocol.Change{Add: []protocol.Member{{Identity: "c again", Addr: "C"}}}, ballot(5)).Join(ballot(6)).Finish(ballot(7))
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0, 1, 2}, recordedAt(set, "A"), recordedAt(set, "B"), recordedAt(set, "C"))
	m.Down(2) // it is not reached from here on
	meet(m, "r", []int{1}, recordedAt(again, "B"))
	m.Down(0)
	v := m.Met(0, "a copy", recordedAt(again, "C"))
	assert.NotEqual(t, protocol.SetFits, v.Fault, "a copy of C's data is used at A's address, and C's own address has shown no other member")
}

// The same with a client that never met C's address.
func TestCopyMetByAFreshClient(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	_, _, done := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{1}, recordedAt(done, "B"))
	v := m.Met(0, "a copy", recordedAt(done, "D"))
	assert.NotEqual(t, protocol.SetFits, v.Fault)
}

// A node votes before it is known to be a member. The claim is admitted by the
// two others. Then the node is known, and another one's number turns out to be
// another member. The view of before counts for the holder, without an answer
// in between.
func TestHolderAsksWhatIsKnownNow(t *testing.T) {
	t.Parallel()
	c, now, node := waits(t, protocol.Rules{})
	_ = node
	c.Exclude(now, 0b001, 0)
	// nodes 1 and 2 push their votes
	for _, i := range []int{1, 2} {
		c.Push(now, i, protocol.Push{ID: c.ID, Ticket: 64, Incarnation: protocol.Incarnation(i + 1), Vote: true})
	}
	require.Equal(t, protocol.Holding, c.Phase())
	c.Exclude(now.Add(1), 0, 0)
	c.Exclude(now.Add(2), 0, 0b100)
	assert.Equal(t, protocol.Lost, c.Phase(), "it holds by node 1, and by what node 0 said before it was known to be a member")
}

// A number stands for D, which is reached at C's address. The exchange is given
// up, and the number stands for C from then on, by its address. What D has said
// to claims stays as what C has said: nothing shows another identity, so
// nothing is forgotten.
func TestNumberThatChangesItsMemberByFollowing(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	_, joint, _ := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0, 1}, recordedAt(joint, "A"), recordedAt(joint, "B"))
	m.Met(3, "run of C", recordedAt(joint, "C"))
	require.Equal(t, protocol.SetFits, m.Met(2, "run of D", recordedAt(joint, "D")).Fault)
	m.Met(3, "run of C", recordedAt(joint, "C"))
	m.Down(3)
	require.Equal(t, 2, m.Node(joint.Place("D")))
	m.Others()
	undone := joint.Undo(ballot(5))
	m.Met(0, "r0", recordedAt(undone, "A"))
	if n := m.Node(undone.Place("C")); n == 2 {
		assert.Equal(t, uint32(1<<2), m.Others(), "what D has said counts as what C has said")
	}
}

// The same in a set that was never exchanged.
func TestServersOfAFirstSetChangeAddresses(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0, 1, 2}, recordedAt(set, "A"), recordedAt(set, "B"), recordedAt(set, "C"))
	meet(m, "r", []int{1}, recordedAt(set, "B"))
	for range 3 {
		for i, addr := range map[int]string{0: "C", 2: "A"} {
			if m.Outside()&(1<<i) != 0 || addr != "" {
				if m.Met(i, "run of "+addr, recordedAt(set, addr)).Fault != protocol.SetFits {
					m.Down(i)
				}
			}
		}
	}
	assert.Zero(t, m.Outside()&0b111)
}

// The pure part of that: two addresses change their servers, and the first
// handshake is refused by the set. Each further try of it keeps the other
// address refused.
func TestRefusedHandshakeKeepsNoVote(t *testing.T) {
	t.Parallel()
	const guard = 20 * time.Second
	s := protocol.NewServers(2, guard, protocol.Rules{})
	now := protocol.Time(time.Hour)
	require.Equal(t, -1, s.Connect(now, 0, "run A"))
	require.Equal(t, -1, s.Connect(now, 1, "run C"))
	s.Down(now, 0)
	s.Down(now, 1)
	for range 200 { // 200 s
		now = now.Add(time.Second)
		for i, run := range []string{"run C", "run A"} {
			if s.Connect(now, i, run) >= 0 {
				continue
			}
			if i == 1 {
				return // Membership meets it, so the two are found to have changed their addresses
			}
			s.Failed(i) // SetAstray: Client.Failed
		}
	}
	t.Error("the second address never gets as far as Membership.Met")
}

// changedBack has the servers of A and B change their addresses, and change
// back after B has left. B is not given A's place because this client has seen
// A at B's address. A is used at its own address again.
func changedBack(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	ch := protocol.Change{Add: []protocol.Member{{Identity: "d", Addr: "D"}}, Remove: []string{"B"}}
	joint := set.Begin(ch, ballot(2)).Join(ballot(3))
	done := joint.Finish(ballot(4))
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	for range 2 {
		meet(m, "r", []int{2, 0, 1}, recordedAt(joint, "C"), recordedAt(joint, "B"), recordedAt(joint, "A"))
	}
	assert.Equal(t, 1, m.Node(joint.Place("A")))
	meet(m, "r", []int{2}, recordedAt(done, "C"))
	m.Met(3, "run of D", recordedAt(done, "D"))
	m.Down(0)
	m.Down(1)
	m.Out = nil
	m.Met(1, "run of B", recordedAt(joint, "B"))
	for _, a := range m.Out {
		assert.NotEqual(t, protocol.SetRestore, a.Kind, "B becomes A")
	}
	assert.True(t, begun(m, 0), "A is looked for at its own address")
	assert.Equal(t, protocol.SetFits, m.Met(0, "run of A", recordedAt(done, "A")).Fault)
	assert.Equal(t, 0, m.Node(done.Place("A")))
}

// begun reports whether a number is to be connected to, by what m has said last
// about it.
func begun(m *protocol.Membership, i int) (begun bool) {
	for _, a := range m.Out {
		if a.Node == i && (a.Begin || a.Cease) {
			begun = a.Begin
		}
	}
	return begun
}

func TestServersThatChangeBack(t *testing.T) {
	t.Parallel()
	changedBack(t, protocol.Rules{})
}

// X is another name of D's address, by which this client has not reached D
// before. As it does, D shows what follows, and the address that the set
// records for D is down.
func TestAnotherNameShowsWhatFollows(t *testing.T) {
	t.Parallel()
	_, _, done := replaced(setOf(1, "A", "B", "C"))
	later := done.Begin(protocol.Change{Remove: []string{"A"}}, ballot(5))
	m := protocol.NewMembership([]string{"A", "B", "X"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0, 1}, recordedAt(done, "A"), recordedAt(done, "B"))
	require.Equal(t, protocol.SetFits, m.Met(3, "run of D", recordedAt(done, "D")).Fault)
	m.Down(3)
	m.Out = nil
	assert.Equal(t, protocol.SetFits, m.Met(2, "run of D", recordedAt(later, "D")).Fault)
	assert.Equal(t, 2, m.Node(later.Place("D")))
	assert.True(t, begun(m, 2), "the connection that has shown it is not used")
}

// retiredElsewhere has C leave, and D's address lead to C's server afterwards.
// C's data say that it was at another address.
func retiredElsewhere(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C") // C has not heard of D
	_, _, done := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	meet(m, "r", []int{0, 1}, recordedAt(done, "A"), recordedAt(done, "B"))
	m.Out = nil
	v := m.Met(3, "run of C", recordedAt(set, "C"))
	assert.Equal(t, protocol.SetAstray, v.Fault)
	for _, a := range m.Out {
		assert.NotEqual(t, protocol.SetRestore, a.Kind, "C becomes D, which another client reaches")
	}
}

func TestServerThatHasLeftIsAtANewAddress(t *testing.T) {
	t.Parallel()
	retiredElsewhere(t, protocol.Rules{})
}

// A server that has left is added again where it was: it may keep its data.
func TestServerThatHasLeftComesBack(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	_, joint, done := replaced(set)
	again := done.Begin(protocol.Change{Add: []protocol.Member{{Identity: "c again", Addr: "C"}}}, ballot(5))
	m := protocol.NewMembership([]string{"A", "B", "D"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0, 1, 2}, recordedAt(again, "A"), recordedAt(again, "B"), recordedAt(again, "D"))
	assert.Equal(t, protocol.SetFits, lostAndVouched(m, "run of C", 3, recordedAt(joint, "C")).Fault)
}

// A holder has forgotten what a number said, as it stands for another member
// from now on. The connection that the number had is still open for a moment.
func TestHolderCountsNothingOfAnUnknownNumber(t *testing.T) {
	t.Parallel()
	c, now, _ := waits(t, protocol.Rules{})
	for _, i := range []int{1, 2} {
		c.Push(now, i, protocol.Push{ID: c.ID, Ticket: 64, Incarnation: protocol.Incarnation(i + 1), Vote: true})
	}
	require.Equal(t, protocol.Holding, c.Phase())
	c.Out = nil
	c.Exclude(now, 0b001, 0b001) // it holds by the others
	c.Tick(now.Add(1))
	require.Len(t, c.Out, 1)
	c.Answer(now.Add(2), c.Out[0], protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 64, Vote: true})
	require.Equal(t, protocol.Holding, c.Phase())
	assert.Equal(t, 2, c.Votes(now.Add(2)), "what was at that number before has voted again")
}

// asOf has a read hear an old value from C, which is reached at A's address,
// and A be the only member that is left after that. A has more.
func asOf(t assert.TestingT, rules protocol.Rules) {
	version := func(n uint64) protocol.Stored {
		return protocol.Stored{Version: protocol.Version{Ticket: protocol.Ticket(n)}}
	}
	says := func(n uint64) protocol.Answer {
		return protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{Stored: version(n), CaughtUp: true}}
	}
	now := protocol.Time(time.Hour)
	q := &protocol.RegisterOp{Op: protocol.OpRead, Nodes: 3, NodeTimeout: time.Second, MaxPause: time.Second, Fresh: 20 * time.Second, Rules: rules}
	q.Start(now)
	asked := append([]protocol.Request(nil), q.Out...)
	q.Out = nil
	q.Answer(now.Add(1), asked[0], says(5))
	q.Answer(now.Add(1), asked[1], protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{Stored: version(9)}}) // a server of another set
	q.Exclude(now.Add(2), 0b011, 0b001)
	q.Regroup(now.Add(2), protocol.Group{Nodes: 3, Sets: protocol.Joint(0b001, 0b001), Absent: 0b110})
	assert.Equal(t, protocol.Asking, q.Outcome(), "what C has said is what A has")
	q.Tick(now.Add(3))
	if !assert.NotEmpty(t, q.Out) {
		return
	}
	before := q.Out[len(q.Out)-1] // on the connection of before
	q.Answer(now.Add(4), before, says(5))
	assert.Equal(t, protocol.Asking, q.Outcome(), "a number that is not known to be a member counts")
	q.Exclude(now.Add(5), 0b010, 0)
	q.Answer(now.Add(6), before, says(5))
	assert.Equal(t, protocol.Asking, q.Outcome(), "an answer to a request of before counts")
	q.Out = nil
	q.Tick(now.Add(2 * time.Second))
	if assert.Len(t, q.Out, 1) {
		q.Answer(now.Add(2*time.Second), q.Out[0], says(7))
	}
	assert.Equal(t, protocol.Settled, q.Outcome())
	assert.Equal(t, version(7), q.Newest())
}

func TestReadForgetsWhatANumberSaid(t *testing.T) {
	t.Parallel()
	asOf(t, protocol.Rules{})
}

// seenElsewhere has a client of a set whose nodes were never exchanged have A's
// vote by the number of B's address: A and B have changed their addresses. They
// change back, and an exchange begins. A gets the number of its own address,
// and B that by which A has voted.
func seenElsewhere(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	learning, _, _ := replaced(set)
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	m.Met(2, "run of C", recordedAt(set, "C"))
	m.Met(0, "run of B", recordedAt(set, "B"))
	m.Down(0) // B may have been copied there, as far as is known
	assert.Equal(t, protocol.SetFits, m.Met(1, "run of A", recordedAt(set, "A")).Fault)
	m.Others()
	m.Down(1)
	assert.Equal(t, protocol.SetFits, m.Met(0, "run of A", recordedAt(learning, "A")).Fault)
	others := m.Others()
	assert.Equal(t, 0, m.Node(learning.Place("A")))
	assert.Equal(t, 1, m.Node(learning.Place("B")))
	assert.Equal(t, uint32(0b10), others&0b10, "what A has said counts as that of B: a holder counts A twice")
}

func TestWhatANumberStoodForBeforeTheFirstExchange(t *testing.T) {
	t.Parallel()
	seenElsewhere(t, protocol.Rules{})
}

// entersWhereAnotherWas has the servers of A and D change their addresses with
// each other while D enters, and change back as D loses its data. D's address
// leads to an empty server, where this client has seen A. A is at its own
// address, and other clients count on it.
func entersWhereAnotherWas(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	learning := set.Begin(protocol.Change{Add: []protocol.Member{{Identity: "d", Addr: "D"}}}, ballot(2))
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	meet(m, "r", []int{1, 2}, recordedAt(learning, "B"), recordedAt(learning, "C"))
	meet(m, "r", []int{2}, recordedAt(learning, "C"))
	m.Met(0, "run of D", recordedAt(learning, "D"))
	m.Down(0) // A may be there as well, as far as is known
	assert.Equal(t, protocol.SetFits, m.Met(3, "run of A", recordedAt(learning, "A")).Fault)
	assert.Equal(t, protocol.SetFits, m.Met(0, "run of D", recordedAt(learning, "D")).Fault)
	m.Down(0)
	m.Down(3)
	m.Out = nil
	lostAndVouched(m, "empty", 3, protocol.NodeSet{})
	assert.Empty(t, restored(m), "it may be A, or D, and other clients may reach either")
	assert.Equal(t, 0, m.Node(learning.Place("A")), "A is looked for at its own address")
	assert.Equal(t, protocol.SetFits, m.Met(0, "run of A", recordedAt(learning, "A")).Fault)
	lostAndVouched(m, "empty", 3, protocol.NodeSet{})
	assert.Equal(t, "d", restored(m))
}

func TestAnEmptyServerWhereAnotherMemberWasSeen(t *testing.T) {
	t.Parallel()
	entersWhereAnotherWas(t, protocol.Rules{})
}

// The servers of A and B have changed their addresses, and change back. B has
// lost its data. It gets B's place back, and the list is not refused.
func TestServersThatChangeBackOneOfThemEmpty(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Met(2, "run of C", recordedAt(set, "C"))
	m.Met(0, "run of B", recordedAt(set, "B"))
	require.Equal(t, protocol.SetFits, m.Met(1, "run of A", recordedAt(set, "A")).Fault)
	require.Equal(t, protocol.SetFits, m.Met(0, "run of B", recordedAt(set, "B")).Fault)
	m.Down(0)
	m.Down(1)
	require.Equal(t, protocol.SetFits, m.Met(0, "run of A", recordedAt(set, "A")).Fault)
	m.Out = nil
	assert.Equal(t, protocol.SetFits, lostAndVouched(m, "empty", 1, protocol.NodeSet{}).Fault)
	assert.Equal(t, set.Members[1].Identity, restored(m))
}

// The servers of B, C and D have changed their addresses under a client of an
// exchanged set, and change back. C has the number of B's address by then, and
// B one of its own there. That one connects first, so C's is refused as a
// second address of B's server.
func TestANumberThatReachesAnotherMembersServer(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	learning := set.Begin(protocol.Change{Add: []protocol.Member{{Identity: "d", Addr: "D"}}}, ballot(2))
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	m.Met(0, "run of A", recordedAt(learning, "A"))
	m.Met(2, "run of D", recordedAt(learning, "D"))
	m.Down(2) // D may be at its own address as well, as far as is known
	require.Equal(t, protocol.SetFits, m.Met(1, "run of C", recordedAt(learning, "C")).Fault)
	m.Down(1)
	b := m.Node(learning.Place("B"))
	require.Equal(t, "B", m.Addr(b))
	require.Equal(t, 1, m.Node(learning.Place("C")))
	require.Equal(t, protocol.SetFits, m.Met(b, "run of B", recordedAt(learning, "B")).Fault)
	m.Out = nil
	m.Same(1, b, "another run")
	require.Equal(t, 1, m.Node(learning.Place("C")), "B's number has reached another server since")
	m.Same(1, b, "run of B")
	assert.NotEqual(t, 1, m.Node(learning.Place("C")), "C is looked for at B's address only")
	for range 2 {
		m.Met(1, "run of C", recordedAt(learning, "C")) // C is there for a moment
		m.Out = nil
		m.Same(1, b, "run of B")
		m.Out = nil
		m.Same(1, b, "run of B")
		assert.Empty(t, m.Out, "each try has all nodes be connected to again")
	}
	assert.Equal(t, "C", m.Addr(m.Node(learning.Place("C"))))
	assert.Equal(t, protocol.SetFits, m.Met(m.Node(learning.Place("C")), "run of C", recordedAt(learning, "C")).Fault)
}

// A's address leads to an empty server, and A is met where E was to enter,
// which is given up. Then both are where they belong.
func TestAMemberThatWasMetWhereAnotherWasToEnter(t *testing.T) {
	t.Parallel()
	set := setOf(1, "A", "B", "C")
	learning := set.Begin(protocol.Change{Add: []protocol.Member{{Identity: "e", Addr: "E"}}}, ballot(2))
	undone := learning.Undo(ballot(3))
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	m.Met(0, "run of E", protocol.NodeSet{})
	m.Down(0)
	m.Met(1, "run of B", recordedAt(learning, "B"))
	m.Met(3, "run of A", recordedAt(learning, "A"))
	m.Down(3)
	assert.Equal(t, protocol.SetFits, m.Met(2, "run of C", recordedAt(undone, "C")).Fault, "the list is refused")
	m.Met(1, "run of B", recordedAt(undone, "B"))
	assert.Equal(t, protocol.SetFits, m.Wrong().Fault)
	require.Equal(t, 3, m.Node(undone.Place("A")))
	m.Out = nil
	assert.Equal(t, protocol.SetRetired, m.Met(3, "run of E", protocol.NodeSet{}).Fault)
	for _, a := range m.Out {
		assert.NotEqual(t, protocol.SetRestore, a.Kind, "E becomes A, which other clients reach")
	}
	assert.True(t, begun(m, 0), "A is looked for at its own address")
	assert.Equal(t, protocol.SetFits, m.Met(0, "run of A", recordedAt(undone, "A")).Fault)
}

// The servers of A and D have changed their addresses. A loses its data where
// it is: D is seen at A's address, so it is not D.
func TestAMemberLosesItsDataAtAnotherOnesAddress(t *testing.T) {
	t.Parallel()
	_, _, done := replaced(setOf(1, "A", "B", "C"))
	m := protocol.NewMembership([]string{"A", "B", "D"}, protocol.Rules{})
	m.Exchanges = true
	for range 2 {
		meet(m, "r", []int{1, 0, 2}, recordedAt(done, "B"), recordedAt(done, "D"), recordedAt(done, "A"))
	}
	m.Down(2)
	m.Out = nil
	assert.Equal(t, protocol.SetFits, lostAndVouched(m, "empty", 2, protocol.NodeSet{}).Fault)
	assert.Equal(t, 2, m.Node(done.Place("A")))
	assert.Equal(t, done.Members[done.Place("A")].Identity, restored(m))
}

// D goes on at an address that a newer list names, and loses its data there.
func TestAMemberLosesItsDataWhereANewerListNamesIt(t *testing.T) {
	t.Parallel()
	_, _, done := replaced(setOf(1, "A", "B", "C"))
	m := protocol.NewMembership([]string{"A", "B", "C"}, protocol.Rules{})
	m.Exchanges = true
	meet(m, "r", []int{0, 1}, recordedAt(done, "A"), recordedAt(done, "B"))
	require.Equal(t, 3, m.Node(done.Place("D")))
	meet(m, "r", []int{1, 3}, recordedAt(done, "B"), recordedAt(done, "D"))
	m.Down(3)
	list := []string{"A", "B", "E"}
	require.Equal(t, 3, m.Moves("E", recordedAt(done, "D"), list))
	m.Move(3, "E", recordedAt(done, "D"))
	meet(m, "r", []int{0, 1, 3}, recordedAt(done, "A"), recordedAt(done, "B"), recordedAt(done, "D"))
	m.Down(3)
	m.Out = nil
	assert.Equal(t, protocol.SetFits, lostAndVouched(m, "empty", 3, protocol.NodeSet{}).Fault)
	assert.Equal(t, done.Members[done.Place("D")].Identity, restored(m))
}
