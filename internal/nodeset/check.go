package nodeset

import (
	"slices"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// What must hold in this package after each event. Builds with the tag
// invariants check it.

// check panics if node i votes with an incarnation that must not count.
func (s *Incarnations) check(i int) {
	n := &s.nodes[i]
	if n.state == voting {
		invariant.Check(n.incarnation == n.votedLast, "a node votes with its newest incarnation")
		invariant.Check(!slices.Contains(n.ended, n.incarnation),
			"an incarnation that another one followed never counts again")
	}
}

// check panics if the clocks that have parted are not as Open says.
func (c *Clocks) check() {
	open := 0
	for i := range c.cases {
		k := &c.cases[i]
		if k.open {
			open++
		}
		invariant.Check(!k.open || k.steady&(1<<i) == 0, "only other nodes show whose clock it was")
	}
	invariant.Check(open == c.open, "each open case is counted")
}

// checkGroup panics if a claim could ask for a vote that it never gets.
func checkGroup(g *protocol.Group) {
	all := g.Sets.All()
	invariant.Check(all&g.Absent == 0, "each node with a vote is asked")
	invariant.Check(uint64(all) < 1<<g.Nodes, "each node with a vote is known")
}

// check panics if two connections could have the vote of one member.
func (m *Membership) check() {
	if m.config == nil {
		return
	}
	voters := map[string]bool{}
	for i := range m.config.Members {
		member := &m.config.Members[i]
		invariant.Check(!voters[member.Identity], "each member has one number")
		voters[member.Identity] = true
		n := &m.members[member.Number]
		if n.up && n.fault == SetFits {
			invariant.Check(n.again || n.has.Identity == member.Identity,
				"a connection counts as the member that its server is")
			invariant.Check(n.again || n.has.Stamp() == m.config.Stamp,
				"a node votes in the client's configuration only")
		}
	}
}
