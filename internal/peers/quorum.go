package peers

// Whether a majority of the nodes can be reached, and the texts about what is
// wrong with a set or one of its members.

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/setup"
)

// Unready returns nil if a quorum of the set's members is connected and belongs
// to the set. Otherwise it returns each node's error, and whether waiting is
// hopeless because too many nodes refuse permanently. Whether the nodes vote is
// another question; see Serving. While no set is known, the nodes are those of
// the list. A majority is enough even if another node refuses permanently:
// Check reports that node's error.
func (ps *Peers) Unready() (f *fault.Failure, hopeless bool) {
	// Read the quorums before the list of nodes: every node is listed before
	// claims count on it.
	sets, list := ps.Driver.Sets(), ps.Nodes.All()
	if !ps.Members.SetKnown() {
		list = ps.Seeds.Live()
		sets = protocol.Majority(len(list))
	}
	f, met, hopeless := tally(list, sets, (*Node).Unfit)
	if met {
		return nil, false
	}
	// If the list is not the set's, every node refuses it.
	if wrong := ps.Members.wrong.Load(); wrong != nil {
		return &fault.Failure{Err: wrong}, true
	}
	return f, hopeless
}

// tally calls err for each node, which returns why the node cannot vote, or
// nil. list[i] is the node of bit i in sets. tally returns a failure, never
// nil, that lists these errors. met reports whether the nodes without an error
// are a quorum, and hopeless whether so many refuse permanently that there can
// be none.
func tally(list []*Node, sets protocol.Quorums, err func(n *Node) error) (
	f *fault.Failure, met, hopeless bool,
) {
	good, refused := uint32(0), uint32(0)
	f = &fault.Failure{Err: fault.ErrNoQuorum, Needed: sets.Need()}
	for i, n := range list {
		if n.Dropped.Load() {
			continue
		}
		err := err(n)
		if err == nil {
			good |= 1 << i
			continue
		}
		if fault.Permanent(err) {
			refused |= 1 << i
		}
		f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: n.Addr, Err: err})
	}
	f.Votes = bits.OnesCount32(good & sets.All())
	return f, sets.Met(good), refused != 0 && sets.Blocked(refused)
}

// Unfit returns why a node is not connected or has no vote in the set, or nil.
func (n *Node) Unfit() error {
	err := cmp.Or(n.ps.Members.unlisted(n, n.Err()), n.ps.Members.unfit(n.Index))
	refused := n.setRefused.Load()
	if refused != nil && (errors.Is(err, fault.ErrSetUnknown) || errors.Is(err, fault.ErrSetLost) ||
		errors.Is(err, fault.ErrRejudged) && n.ps.Members.Config.Load() == nil) {
		return &fault.SetRefusedError{Verdict: err, Err: *refused}
	}
	return err
}

// unfit returns why a node had no vote in the set on its last connection, or
// nil.
func (s *members) unfit(i int) error {
	s.mu.Lock()
	v := s.known.Verdict(i)
	s.mu.Unlock()
	return s.VerdictError(v)
}

// Unknown returns why no set is known: what each node of the list shows.
func (s *members) Unknown() *fault.Failure {
	list := s.ps.Seeds.Live()
	f, _, _ := tally(list, protocol.Majority(len(list)), (*Node).Unfit)
	f.Votes = 0 // without a set there is nothing to vote for
	return f
}

// blank reports whether a majority of the client's list is connected, and no
// node of it has recorded a set: the nodes are brand-new, or have lost all
// data.
func (s *members) blank() bool {
	up, all := s.blankNodes()
	return up >= all/2+1
}

// allBlank reports whether all nodes of the list are connected and blank.
func (s *members) allBlank() bool {
	up, all := s.blankNodes()
	return up == all
}

// blankNodes returns how many nodes of the list are connected to, and how many
// there are. It returns 0 if one of them has recorded a set, or this client
// counts on one.
func (s *members) blankNodes() (up, all int) {
	list := s.ps.Seeds.Live()
	for _, n := range list {
		if n.Err() != nil {
			continue
		}
		has := n.Shown()
		if has == nil || has.Recorded() != nil {
			return 0, len(list)
		}
		up++
	}
	if s.Config.Load() != nil {
		return 0, len(list)
	}
	return up, len(list)
}

// Shown returns the record of the set that a node has shown, or nil.
func (n *Node) Shown() *nodeset.NodeSet {
	s := n.ps.Members
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Has(n.Index)
}

// roleNames describes a node's role in the set, by what is wrong with the node.
var roleNames = map[nodeset.SetFault]string{
	nodeset.SetFits: "member", nodeset.SetPending: "accepted", nodeset.SetLost: "blank",
	nodeset.SetBetween: "blank", nodeset.SetOther: "another member's data",
	nodeset.SetForeign: "another set's data", nodeset.SetAhead: "ahead", nodeset.SetRetired: "removed",
}

// Membership describes a node's role in the set. It is empty if the node has
// shown nothing.
func (s *members) Membership(i int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.known.Has(i)
	switch {
	case has == nil:
		return ""
	case i >= nodeset.Seed && has.Config == nil:
		return "blank"
	}
	return roleNames[s.known.Verdict(i).Fault]
}

// CheckSettings returns why a claim with these settings cannot be made, or nil. Each
// call uses it, so it reads copies and takes no lock. set may be a primitive's
// own: two primitives of one Quorum may have different TTLs.
func (s *members) CheckSettings(set *setup.Settings) error {
	if wrong := s.wrong.Load(); wrong != nil {
		return wrong
	}
	c := s.Config.Load()
	switch {
	case c == nil:
	case set.GuardGiven && set.Guard > c.Guard():
		return fmt.Errorf("%w: WithGuard(%v) is longer than the set's guard time, %v: leave WithGuard out, "+
			"or raise the set's guard time: quorate members set --guard", fault.ErrInvalid, set.Guard, c.Guard())
	case set.TTL > c.LongestTTL():
		return &fault.TTLError{TTL: set.TTL, Skew: c.Skew(), Guard: c.LeaseGuard(),
			Development: setup.IsDevelopment(c.LeaseGuard(), c.Skew(), len(c.Members))}
	}
	return nil
}

// setError returns the error for a verdict that concerns all nodes, or nil.
// Called with s.mu held.
func (s *members) setError(v nodeset.SetVerdict) *fault.SetError {
	if v.Fault != nodeset.SetWrong {
		return nil
	}
	return &fault.SetError{List: s.known.List(), Set: v.Shown.Addrs(), Since: v.Shown.Stamp.Since()}
}

// lacking returns the nodes of the list that are no members of c, if they are so
// many that the list cannot lead to c even if all members answer.
func (s *members) lacking(c *nodeset.Configuration) []string {
	list := s.list()
	lacking := slices.DeleteFunc(slices.Clone(list), func(addr string) bool { return c.Place(addr) >= 0 })
	if len(list)-len(lacking) >= len(list)/2+1 {
		return nil
	}
	return lacking
}

// VerdictError returns why a node has no vote, nil if it has. It takes s.mu, so
// no event of Membership may call it.
func (s *members) VerdictError(v nodeset.SetVerdict) error {
	if v.Enters() {
		return fault.ErrSetEnters
	}
	switch v.Fault {
	case nodeset.SetWrong:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.setError(v)
	case nodeset.SetUnknown:
		if v.Shown == nil {
			return fault.ErrSetUnknown
		}
		if lacking := s.lacking(v.Shown); len(lacking) > 0 {
			return &fault.MemberError{Why: "is of the set " + fault.Addrs(v.Shown.Addrs()) + ", which does " +
				"not include " + fault.Addrs(lacking) + ": give this client the set's list or, to add these nodes, run " +
				"quorate members add with the set's list as --nodes"}
		}
		return &fault.MemberError{Why: "is of the set " + fault.Addrs(v.Shown.Addrs()) +
			"; too few nodes of this client's list agree: start those that are down, or give this client the set's " +
			"list"}
	case nodeset.SetPending:
		return fault.ErrSetPending
	case nodeset.SetLost:
		return fault.ErrSetLost
	case nodeset.SetBetween:
		return fault.ErrSetBetween
	case nodeset.SetRetired:
		return fault.ErrSetRetired
	case nodeset.SetAhead:
		return &fault.MemberError{Why: "serves a later configuration of the set, " + fault.Addrs(v.Shown.Addrs()) +
			", and the client is asking the other nodes whether it was decided; if this error persists, check that " +
			"list with \"quorate members list\", and give it to this client if it is the set"}
	case nodeset.SetForeign:
		// This error goes away if all members have lost their data and have
		// recorded their set again (e2e: TestFlushAll).
		return &fault.MemberError{Why: "has the data of another set of nodes, " + fault.Addrs(v.Shown.Addrs()) +
			"; start this set's server at the address, or record where it is now: quorate members move"}
	case nodeset.SetOther:
		at := v.Set.Member(v.As)
		if at < 0 { // that member has left the set since the node was judged
			return fault.ErrRejudged
		}
		return &fault.MemberError{Final: true,
			Why: fmt.Sprintf("has the data of %s, another member of this set, so its vote would count twice; start "+
				"it with its own data or, if that member now runs here, record the address: quorate members move",
				resp.OneLine(v.Set.Members[at].Addr))}
	}
	return nil
}
