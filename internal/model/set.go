package model

import "github.com/quorate/quorate/internal/protocol"

// This file owns the register of the set that a node belongs to:
// scripts/set.lua in the simplest code that is right. It is one Paxos acceptor
// for the first configuration. After that the node only moves to later
// configurations.
//
// Invariant: what is recorded is never replaced by a promise or an accept.
// Without that a second list of nodes could win over this node, and both sets
// would count its vote.
//
// Invariant: a node that enters a set, or gets its place back, votes after its
// guard time only. It may have given votes that it has forgotten.

// Step carries out a step of the register, and returns what the node keeps
// then. A node without a set has no marker of a configuration, so fresh is the
// incarnation that it takes then.
func (n *Node) Step(now int64, s protocol.RecordStep, fresh protocol.Incarnation) protocol.NodeSet {
	higher := s.Ballot > n.set.Promised
	switch {
	case s.Kind == protocol.SetPromise && n.set.Phase != protocol.SetRecorded && higher:
		n.set.Promised = s.Ballot
	// A word that tells this life of the node's data from the next one: see
	// protocol.Membership.
	case s.Kind == protocol.SetLife && n.set.Config == nil && n.set.Life == "":
		n.set.Life = s.Life
	case s.Kind == protocol.SetAccept && n.set.Phase != protocol.SetRecorded && (s.Ballot >= n.set.Promised || n.off(SetPromise)) &&
		(s.Ballot != n.set.Accepted || s.Identity == n.set.Identity):
		if !n.marked {
			n.Mark(now, fresh)
		}
		n.set = protocol.NodeSet{Promised: s.Ballot, Accepted: s.Ballot, Phase: protocol.SetAccepted, Identity: s.Identity, Config: s.Config}
	// A set that most nodes have forgotten: without a marker the node refuses
	// every request until that set is recorded again. A vote before that could
	// be for a claim beside one whose lease was lost.
	case s.Kind == protocol.SetRegain && n.set.Phase != protocol.SetRecorded && s.Ballot >= n.set.Promised &&
		(s.Ballot != n.set.Accepted || s.Identity == n.set.Identity):
		n.marked = false
		n.set = protocol.NodeSet{Promised: s.Ballot, Accepted: s.Ballot, Phase: protocol.SetAccepted, Regains: true, Identity: s.Identity, Config: s.Config}
	case s.Kind == protocol.SetCommit && n.set.Config != nil && n.set.Stamp() == s.Config.Stamp:
		if !n.marked {
			n.Mark(now, fresh)
			n.keepSettings(s.Config)
		}
		n.set.Phase, n.set.Regains = protocol.SetRecorded, false
	// The marker moves along, so the guard time goes on as it was. The identity
	// must be the same: the step is meant for that member, and another server
	// may be at its address now.
	case s.Kind == protocol.SetMove && n.set.Config != nil && !n.set.Regains && n.set.Identity == s.Identity &&
		(n.set.Stamp().Epoch() < s.Config.Stamp.Epoch() || n.off(SetHigher)):
		if !n.marked {
			n.Mark(now, fresh)
		}
		if s.Enters() {
			n.learnt, n.caughtUp = n.caughtUp, false
		}
		n.set = protocol.NodeSet{Phase: protocol.SetRecorded, Identity: s.Identity, Config: s.Config}
	// The client names what it has read here. Another client's step in between
	// makes that false, and the restore has no effect.
	case s.Kind == protocol.SetRestore && s.Seen == n.SetText():
		n.Mark(now, fresh)
		n.keepSettings(s.Config)
		n.set = protocol.NodeSet{Phase: protocol.SetRecorded, Identity: s.Identity, Config: s.Config}
	}
	return n.Set()
}

// keepSettings keeps the guard time and the retention of a configuration. They
// last though no client has shown them to this node yet: a node that enters may
// be asked first by a client with shorter ones.
func (n *Node) keepSettings(c *protocol.Configuration) {
	n.longest.guard = max(n.longest.guard, c.Guard.Milliseconds())
	n.longest.retention = max(n.longest.retention, c.Retention.Milliseconds())
}

// Set returns what the node keeps of its set.
func (n *Node) Set() protocol.NodeSet {
	s := n.set
	s.Text = n.SetText()
	return s
}

// SetText returns that as the scripts keep it, empty if the node keeps nothing.
func (n *Node) SetText() string {
	if n.set.Config == nil && n.set.Promised == "" && n.set.Life == "" {
		return ""
	}
	return n.set.String()
}

// Count says on which configuration the client of the next request counts.
func (n *Node) Count(s protocol.Stamp) { n.counts = s }

// refuses reports whether the request is of a client that counts on another
// configuration. A node whose set is being regained refuses all: it has
// accepted that set, and another recording of it may still fail.
func (n *Node) refuses() bool {
	return (n.counts != n.set.Stamp() || n.set.Regains) && !n.off(SetRefuse)
}

// Kept reports whether the node was caught up when it entered, and has lost
// nothing since.
func (n *Node) Kept() bool { return n.learnt }
