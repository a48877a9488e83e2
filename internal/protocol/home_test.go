package protocol_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

// swappedWhileOneLeft has D replace A. While D learns, the addresses of A and D
// lead to each other's servers, and the client follows that. Then the new set
// counts, and the client has a connection to B and C only.
func swappedWhileOneLeft(rules protocol.Rules) (m *protocol.Membership, done *protocol.Configuration) {
	set := setOf(1, "A", "B", "C")
	learning := set.Begin(protocol.Change{Add: []protocol.Member{{Identity: "d", Addr: "D"}}, Remove: []string{"A"}}, ballot(2))
	done = learning.Join(ballot(3)).Finish(ballot(4))
	m = protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	meet(m, "r", []int{1, 2}, recordedAt(learning, "B"), recordedAt(learning, "C"))
	m.Group()
	for range 5 {
		m.Met(0, "run of D", recordedAt(learning, "D"))
		m.Met(3, "run of A", recordedAt(learning, "A"))
	}
	m.Met(1, "run of B", recordedAt(done, "B"))
	m.Met(2, "run of C", recordedAt(done, "C"))
	m.Down(3)
	m.Out = nil
	m.Down(0)
	return m, done
}

// stoppedAfterASwap has the servers change back, and A be stopped. D is asked
// at its own address, and no longer once A's address shows D again.
func stoppedAfterASwap(t assert.TestingT, rules protocol.Rules) {
	m, done := swappedWhileOneLeft(rules)
	begun := false
	for _, a := range m.Out {
		begun = begun || a.Begin && a.Node == 3
	}
	assert.True(t, begun && m.Wants(3), "the number of D's address is connected to")
	m.Met(3, "run of D", recordedAt(done, "D"))
	d := m.Node(done.Place("D"))
	assert.True(t, m.Wants(d) && m.Addr(d) == "D", "D is number %d at %s", d, m.Addr(d))
	assert.Zero(t, m.Outside()&(1<<d))
}

func TestMemberAtItsOwnAddressAfterAnotherWasStopped(t *testing.T) {
	t.Parallel()
	stoppedAfterASwap(t, protocol.Rules{})
}

// The servers have not changed back, and the connection to D was broken for a
// moment: the number of D's address is let go of again.
func TestMemberThatComesBackWhereItWasSeen(t *testing.T) {
	t.Parallel()
	m, done := swappedWhileOneLeft(protocol.Rules{})
	m.Met(0, "run of D", recordedAt(done, "D"))
	m.Out = nil
	m.Up(0)
	assert.False(t, m.Wants(3))
	assert.Contains(t, m.Out, protocol.SetAction{RecordStep: protocol.RecordStep{Node: 3}, Cease: true})
	assert.Equal(t, 0, m.Node(done.Place("D")))
}

// downAfterASwap has A and B change their addresses with each other, and change
// back. A's server crashes at that moment.
func downAfterASwap(t assert.TestingT, rules protocol.Rules) {
	_, _, done := replaced(setOf(1, "A", "B", "C")) // A, B and D
	m := protocol.NewMembership([]string{"A", "B", "D"}, rules)
	m.Exchanges = true
	meet(m, "r", []int{0, 1, 2}, recordedAt(done, "A"), recordedAt(done, "B"), recordedAt(done, "D"))
	m.Down(0)
	m.Down(1)
	for range 5 {
		m.Met(0, "run of B", recordedAt(done, "B"))
		m.Met(1, "run of A", recordedAt(done, "A"))
	}
	assert.Zero(t, m.Outside()&0b111)
	m.Down(0)
	m.Down(1)
	var fault protocol.SetFault
	for range 5 { // no server answers at A's address
		for i := range m.Group().Nodes {
			if m.Addr(i) == "B" && m.Wants(i) {
				if fault = m.Met(i, "run of B", recordedAt(done, "B")).Fault; fault != protocol.SetFits {
					m.Down(i)
				}
			}
		}
	}
	assert.Equal(t, protocol.SetFits, fault, "two of three nodes are up, and B is one of them")
}

func TestMemberAtItsOwnAddressWhileAnotherIsDown(t *testing.T) {
	t.Parallel()
	downAfterASwap(t, protocol.Rules{})
}

// emptiedAfterASwap has the servers change back, and A be emptied.
func emptiedAfterASwap(t assert.TestingT, rules protocol.Rules) {
	m, done := swappedWhileOneLeft(rules)
	empty := protocol.NodeSet{}
	for range 5 {
		m.Out = nil
		m.Met(0, "run of A", empty)
		for _, a := range m.Out {
			if a.Kind == protocol.SetLife && a.Node == 0 {
				empty.Life = "life"
				empty.Text = empty.String()
			}
			if a.Ask > 0 {
				m.Told(a.Node, a.Ask, recordedAt(done, m.Addr(a.Node)))
			}
			assert.NotEqual(t, protocol.SetRestore, a.Kind, "the emptied A becomes D, beside D: %v", a.Identity)
		}
	}
}

func TestEmptiedServerDoesNotBecomeTheMemberSeenThere(t *testing.T) {
	t.Parallel()
	emptiedAfterASwap(t, protocol.Rules{})
}

// replacedOften has one member of three be replaced that many times. It returns
// the last address that was left, and the sets before and after that.
func replacedOften(times int) (left string, before, after *protocol.Configuration) {
	after, left = setOf(1, "A", "B", "C"), "C"
	for i := range times {
		next := fmt.Sprint("X", i)
		before = after
		after = before.Begin(protocol.Change{Add: []protocol.Member{{Identity: "id" + next, Addr: next}}, Remove: []string{left}}, ballot(3*i+2)).Join(ballot(3*i + 3)).Finish(ballot(3*i + 4))
		if i < times-1 {
			left = next
		}
	}
	return left, before, after
}

// oldCopy has a client start with a list that has the address of a copy of A's
// data, and meet that first. Then B shows what counts now. A is not reached.
func oldCopy(t assert.TestingT, rules protocol.Rules, at string, was, now *protocol.Configuration) {
	m := protocol.NewMembership([]string{"A", "B", at}, rules)
	m.Exchanges = true
	m.Met(2, "run of the copy", recordedAt(was, "A"))
	m.Down(2)
	m.Met(1, "run of B", recordedAt(now, "B"))
	m.Out = nil
	if m.Wants(2) {
		m.Met(2, "run of the copy", recordedAt(was, "A"))
	}
	assert.Equal(t, 0, m.Node(now.Place("A")), "the copy is A, beside A")
	for _, a := range m.Out {
		assert.NotEqual(t, protocol.SetMove, a.Kind, "the copy serves the set as %s", a.Identity)
	}
}

// oldCopyAtAMember: the address is that of a member that has entered since.
func oldCopyAtAMember(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	_, _, done := replaced(set) // A, B and D
	oldCopy(t, rules, "D", set, done)
}

// oldCopyOfBefore: that member has left again.
func oldCopyOfBefore(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	_, _, done := replaced(set)
	oldCopy(t, rules, "D", set, done.Begin(protocol.Change{Add: []protocol.Member{{Identity: "e", Addr: "E"}}, Remove: []string{"D"}}, ballot(5)).Join(ballot(6)).Finish(ballot(7)))
}

// oldCopyAfterMany: more members have left than a configuration records.
func oldCopyAfterMany(t assert.TestingT, rules protocol.Rules) {
	left, before, after := replacedOften(33)
	oldCopy(t, rules, left, before, after)
}

func TestOldCopyIsNotUsed(t *testing.T) {
	t.Parallel()
	oldCopyAtAMember(t, protocol.Rules{})
	oldCopyOfBefore(t, protocol.Rules{})
	oldCopyAfterMany(t, protocol.Rules{})
}

// The server that left last was emptied. A client whose list has it goes on.
func TestServerThatLeftLastIsKnown(t *testing.T) {
	t.Parallel()
	left, _, after := replacedOften(33)
	_, ok := protocol.ParseConfiguration(after.String())
	assert.True(t, ok, "the latest addresses are as many as a configuration may record")
	m := protocol.NewMembership([]string{"A", "B", left}, protocol.Rules{})
	m.Exchanges = true
	m.Met(0, "run of A", recordedAt(after, "A"))
	m.Met(1, "run of B", recordedAt(after, "B"))
	assert.Equal(t, protocol.SetRetired, m.Met(2, "run of the last", protocol.NodeSet{}).Fault)
}

// metElsewhereOnly has A and B have each other's address. F replaces A, and has
// B's address then. So F has the number of B's address as the client learns of
// it, and no number has F's address. Then each server is at its own address
// again, and B is stopped.
func metElsewhereOnly(t assert.TestingT, rules protocol.Rules) {
	set := setOf(1, "A", "B", "C")
	change := protocol.Change{Add: []protocol.Member{{Identity: "f", Addr: "F"}}, Remove: []string{"A"}}
	done := set.Begin(change, ballot(2)).Join(ballot(3)).Finish(ballot(4))
	f := done.Place("F")
	m := protocol.NewMembership([]string{"A", "B", "C"}, rules)
	m.Exchanges = true
	m.Met(2, "run of C", recordedAt(set, "C"))
	m.Met(1, "run of A", recordedAt(set, "A"))
	m.Met(0, "run of B", recordedAt(set, "B"))
	m.Met(1, "run of A", recordedAt(set, "A"))
	m.Down(1)
	m.Met(1, "run of F", recordedAt(done, "F"))
	assert.Equal(t, 1, m.Node(f))
	m.Met(2, "run of C", recordedAt(done, "C"))
	m.Down(0)
	m.Down(1)
	asked := false
	for i := range m.Group().Nodes {
		if m.Addr(i) == "F" && m.Wants(i) {
			asked = true
			m.Met(i, "run of F", recordedAt(done, "F"))
		}
	}
	assert.True(t, asked, "F is asked for at its own address")
	assert.Equal(t, "F", m.Addr(m.Node(f)))
	assert.Zero(t, m.Outside()&(1<<m.Node(f)), "two of three members run, and F is one of them")
}

func TestMemberThatWasMetElsewhereOnly(t *testing.T) {
	t.Parallel()
	metElsewhereOnly(t, protocol.Rules{})
}

// sleptThroughExchanges has a client with the list AB count on A and B, and on
// B alone once A has left. While the client reaches nothing, A enters again,
// and B leaves and is stopped.
func sleptThroughExchanges(t assert.TestingT, rules protocol.Rules) {
	both := setOf(1, "A", "B")
	alone := both.Begin(protocol.Change{Remove: []string{"A"}}, ballot(2)).Join(ballot(3)).Finish(ballot(4))
	again := alone.Begin(protocol.Change{Add: []protocol.Member{{Identity: "a again", Addr: "A"}}, Remove: []string{"B"}}, ballot(5)).Join(ballot(6)).Finish(ballot(7))
	m := protocol.NewMembership([]string{"A", "B"}, rules)
	m.Exchanges = true
	m.Met(1, "run of B", recordedAt(alone, "B"))
	assert.False(t, m.Wants(0), "A has left, and B is reached")
	m.Out = nil
	m.Down(1)
	assert.True(t, m.Wants(0) && begun(m, 0), "A is asked, as no member is reached")
	if m.Wants(0) {
		m.Met(0, "run of A", recordedAt(again, "A"))
	}
	assert.Equal(t, again.Stamp, m.Stamp())
	assert.Zero(t, m.Outside()&1)
}

func TestClientThatSleptAsksWhatHadLeft(t *testing.T) {
	t.Parallel()
	sleptThroughExchanges(t, protocol.Rules{})
}

// A has left and does not answer. A client that loses B for a moment asks for A
// meanwhile, and no longer.
func TestNodeThatHadLeftIsLetGoOf(t *testing.T) {
	t.Parallel()
	alone := setOf(1, "A", "B").Begin(protocol.Change{Remove: []string{"A"}}, ballot(2)).Join(ballot(3)).Finish(ballot(4))
	m := protocol.NewMembership([]string{"A", "B"}, protocol.Rules{})
	m.Exchanges = true
	m.Met(1, "run of B", recordedAt(alone, "B"))
	m.Down(1)
	assert.True(t, m.Wants(0) && begun(m, 0))
	m.Met(1, "run of B", recordedAt(alone, "B"))
	m.Out = nil
	m.Up(1)
	assert.False(t, m.Wants(0))
	assert.Contains(t, m.Out, protocol.SetAction{RecordStep: protocol.RecordStep{Node: 0}, Cease: true})
}
