package change

import (
	"slices"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// How the nodes of a set are exchanged: which configuration may follow which.
//
//	            the new nodes take in        a majority of each        the new set
//	Stable ---> Learning ------------------> Joint ------------------> Stable
//	   ^           |                           |
//	   `-----------+---------- undone ---------'
//
// Invariant: a configuration and the next one have a set in common of which
// both need a majority. So of two claims that are admitted under them, one
// after the other, the later one meets the earlier one at a node. Only the step
// from Joint to the new set is without such a set for clients that count on
// what was before Joint. These cannot hold any more by then: see Exchange.

// Goal is the intended change of a set.
type Goal struct {
	Add    []nodeset.Member // their numbers are given by Begin
	Remove []string         // addresses
	Move   []nodeset.Member // members by identity, with the addresses that they get
	Keep   bool             // for Move: the members keep their earlier addresses as well
	Shared *nodeset.Shared  // nil: the settings stay
}

// Empty reports whether there is nothing to change.
func (ch *Goal) Empty() bool {
	return len(ch.Add)+len(ch.Remove)+len(ch.Move) == 0 && ch.Shared == nil
}

// Fits reports whether a change of a stable set makes sense, and leaves a node.
//
// Invariant: what is decided can be read again. Without that two new nodes of
// one address end the set: no client knows any more what was decided.
func Fits(c *nodeset.Configuration, ch Goal) bool {
	// With such a guard time no lease would fit.
	if c.Stage != nodeset.Stable || ch.Empty() || ch.Shared != nil && ch.Shared.Guard <= 2*ch.Shared.Skew ||
		len(ch.Add)+len(c.Members) > nodeset.MaxMembers || len(ch.Add)+len(c.Members) == len(ch.Remove) {
		return false
	}
	for _, m := range ch.Add {
		if c.Place(m.Addr) >= 0 || c.Member(m.Identity) >= 0 || slices.Contains(ch.Remove, m.Addr) {
			return false
		}
	}
	for _, m := range ch.Move {
		k := c.Member(m.Identity)
		if at := c.Place(m.Addr); k < 0 || at >= 0 && at != k {
			return false
		}
	}
	if slices.ContainsFunc(ch.Remove, func(a string) bool { return c.Place(a) < 0 }) {
		return false
	}
	next := Begin(c, ch, c.Stamp.Ballot())
	_, begins := nodeset.ParseConfiguration(next.String())
	_, ends := nodeset.ParseConfiguration(Finish(next, c.Stamp.Ballot()).String())
	return begins && ends
}

// Begin returns the first configuration of a change. If no node is added and no
// holder can be left with too few nodes, it skips Learning. A change of
// addresses alone needs no stages, because the quorums stay the same.
func Begin(c *nodeset.Configuration, ch Goal, b nodeset.Ballot) *nodeset.Configuration {
	n := follow(c, b, nodeset.Learning)
	for i := range n.Members {
		m := &n.Members[i]
		if slices.Contains(ch.Remove, m.Addr) {
			m.Role = nodeset.Leaves
		}
		for _, to := range ch.Move {
			switch {
			case to.Identity != m.Identity:
			case !ch.Keep:
				m.Addr, m.Also = to.Addr, nil
			case !m.Has(to.Addr):
				m.Also = append(slices.Clone(m.Also), to.Addr)
			}
		}
	}
	for _, m := range ch.Add {
		m.Role, m.Number = nodeset.Enters, give(n)
		n.Members = append(n.Members, m)
	}
	if ch.Shared != nil {
		n.Next = *ch.Shared
	}
	switch {
	case len(ch.Add)+len(ch.Remove) == 0 && n.Next == n.Now:
		n.Stage = nodeset.Stable
	case len(ch.Add) == 0:
		n.Stage = nodeset.Jointly
	}
	return n
}

// give returns the number of a member that enters.
//
// Invariant: numbers are reused as late as possible. So what a client knows of
// the member that had it before is over by then. A client that has slept for so
// long forgets it, see Group.Reassigned.
func give(c *nodeset.Configuration) int {
	for {
		if c.Last = (c.Last + 1) % protocol.MaxNodes; c.Numbered(c.Last) == nil {
			return c.Last
		}
	}
}

// follow returns a copy of c for the next epoch.
func follow(c *nodeset.Configuration, b nodeset.Ballot, s nodeset.Stage) *nodeset.Configuration {
	n := *c
	n.Stamp, n.Stage, n.Members = nodeset.StampOf(c.Stamp.Epoch()+1, b), s, slices.Clone(c.Members)
	return &n
}

// Join returns the configuration that follows Learning.
func Join(c *nodeset.Configuration, b nodeset.Ballot) *nodeset.Configuration {
	return follow(c, b, nodeset.Jointly)
}

// Finish returns the configuration of the new set.
func Finish(c *nodeset.Configuration, b nodeset.Ballot) *nodeset.Configuration {
	n := end(c, b, nodeset.Leaves)
	n.Now = n.Next
	return n
}

// Undo returns the configuration of the set before the change.
func Undo(c *nodeset.Configuration, b nodeset.Ballot) *nodeset.Configuration {
	n := end(c, b, nodeset.Enters)
	n.Next = n.Now
	return n
}

func end(c *nodeset.Configuration, b nodeset.Ballot, without nodeset.Role) *nodeset.Configuration {
	n := follow(c, b, nodeset.Stable)
	n.Members = slices.DeleteFunc(n.Members, func(m nodeset.Member) bool { return m.Role == without })
	for i := range n.Members {
		n.Members[i].Role = nodeset.Stays
	}
	return n
}

// vacates reports whether no member of c has an address of a member that
// decides what follows o. A client may know that member only by this address.
func vacates(c *nodeset.Configuration, o *nodeset.Configuration) bool {
	gone := func(addr string) bool { return c.Place(addr) < 0 }
	return slices.ContainsFunc(o.Members,
		func(m nodeset.Member) bool { return m.Role != nodeset.Enters && slices.ContainsFunc(m.All(), gone) })
}

// has reports whether the change ch is the one under way or, without underWay,
// whether nothing of it is left to do.
func has(c *nodeset.Configuration, ch Goal, underWay bool) bool {
	for _, m := range ch.Add {
		if at := c.Place(m.Addr); at < 0 || underWay && c.Members[at].Role != nodeset.Enters {
			return false
		}
	}
	for _, a := range ch.Remove {
		if at := c.Place(a); at >= 0 != underWay || underWay && c.Members[at].Role != nodeset.Leaves {
			return false
		}
	}
	for _, m := range ch.Move {
		if at := c.Place(m.Addr); at < 0 || c.Members[at].Identity != m.Identity ||
			!ch.Keep && len(c.Members[at].Also) > 0 {
			return false
		}
	}
	return ch.Shared == nil || *ch.Shared == c.Next && (underWay || c.Next == c.Now)
}
