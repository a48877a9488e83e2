package nodeset

import (
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns when the nodes of a list record a set, and when a set that
// most of its members have forgotten is recorded again. Recording owns how.
// Invariant: all nodes record a set, or none does. So each of them is connected
// and judged when a recording begins: one that is away may know a set, or a
// later configuration, and the set would have two successors of one epoch.

// Want says that a call waits for nodes that vote. From then on blank nodes
// record the set of the client's list. Before that an operator has the time to
// declare them new, see Bootstrap.
func (m *Membership) Want() { m.claimed = true }

// Due reports whether Record returns a Recording.
func (m *Membership) Due() bool { return m.due(m.claimed) != nil }

// Record returns the Recording that is due, nil if none is. shared are the
// client's settings, for a set that is new. With ready an operator has declared
// the nodes brand-new: no guard time begins.
func (m *Membership) Record(b Ballot, shared Shared, ready bool, identity func() string) *Recording {
	d := m.due(m.claimed || ready)
	switch {
	// An operator's word is of new nodes. Those of a set that seems to be
	// forgotten may be about to get their commits.
	case d == nil, d.again != nil && ready:
		return nil
	case d.again != nil:
		m.mine = newRecording(d.again, d.at, b, true, false, m.rules)
		return m.mine
	}
	// Leases that the set allowed which the nodes have forgotten may run yet.
	shared = shared.orLonger(m.shared)
	c := &Configuration{Stamp: StampOf(1, b), Origin: StampOf(1, b), Now: shared, Next: shared, Last: len(m.list) - 1}
	for i, addr := range m.list {
		c.Members = append(c.Members, Member{Number: i, Identity: identity(), Addr: addr})
	}
	m.mine = newRecording(c, d.at, b, false, ready, m.rules)
	return m.mine
}

// committed returns what a server keeps that a connection has reached. If all
// nodes have accepted what this client records, and the commit to this one was
// lost with a connection, Out has it.
// Invariant: a node that has got its commit gets it no more. It may have voted
// since, and come back with a file of before: it has lost its data.
func (m *Membership) committed(i int, has NodeSet) NodeSet {
	r := m.mine
	if r == nil || r.phase != SetCommit {
		return has
	}
	if r.keeps(has); r.kept[has.Identity] || has.Phase != SetAccepted || has.Accepted != r.ballot {
		return has
	}
	m.step(i, RecordStep{Kind: SetCommit, Ballot: r.ballot, Identity: has.Identity, Config: r.Config, Ready: r.ready})
	return NodeSet{Phase: SetRecorded, Identity: has.Identity, Config: r.Config}
}

// dueRecording is what is to be recorded.
type dueRecording struct {
	again *Configuration // nil: a new set
	at    []int          // the connections to its nodes
}

func (m *Membership) due(claimed bool) *dueRecording {
	if m.config != nil {
		return m.dueAgain(m.config)
	}
	blank := true
	for i := range m.seeds {
		n := &m.seeds[i]
		if !n.up || n.again {
			return nil
		}
		blank = blank && n.has.Phase != SetRecorded
	}
	if !blank {
		sets := m.shown()
		if len(sets) != 1 || !m.covers(sets[0][0]) {
			return nil
		}
		return m.dueAgain(sets[0][0])
	}
	if !claimed {
		return nil
	}
	d := &dueRecording{}
	for i := range m.seeds {
		d.at = append(d.at, Seed+i)
	}
	return d
}

// dueAgain returns the recording that is due where fewer than a majority of the
// members of c remember the set. It concerns all members of the latest
// configuration that is remembered.
// Invariant: while the set is being changed it is not recorded again. A
// majority of the members that decide may have lost what they decided. What the
// others say of the stage may be over then, and a second decision would give
// the set two successors.
func (m *Membership) dueAgain(c *Configuration) *dueRecording {
	top, knows, lost := c, uint32(0), false
	for _, member := range c.Members {
		n := m.contactAt(member.Addr)
		if n == nil || !n.up || n.again {
			return nil
		}
		switch shown := n.has.Recorded(); {
		case shown != nil && shown.Kin(c) && n.has.Identity == member.Identity:
			knows |= 1 << member.Number
			if shown.Stamp.Compare(top.Stamp) > 0 {
				top = shown
			}
		case shown != nil: // an operator has to look
			return nil
		default:
			lost = true
		}
	}
	if !lost || knows == 0 && m.config == nil || protocol.Most(c.Deciders(), knows) || top.Stage != Stable {
		return nil
	}
	d := &dueRecording{again: top}
	for _, member := range top.Members {
		at := m.numberAt(member.Addr)
		if at < 0 || !m.at(at).up {
			return nil
		}
		d.at = append(d.at, at)
	}
	return d
}

// Recorded says that this client has carried out a Recording. The nodes without
// a vote are judged again, which may have one now.
func (m *Membership) Recorded(r *Recording) {
	if m.config == nil {
		m.adopt(-1, r.Config)
	}
	m.Rejudge()
}

// Rejudge has the nodes without a vote be judged again that may have one now.
func (m *Membership) Rejudge() {
	m.each(func(i int, n *contact) {
		if n.fault == SetLost || n.fault == SetPending || n.fault == SetUnknown {
			m.Again(i)
		}
	})
}
