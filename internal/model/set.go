package model

import (
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// The register of the set that a node belongs to: scripts/set.lua in the
// simplest code that is correct. It is one Paxos acceptor for a configuration
// that all members record. Apart from that the node only moves to later
// configurations.
//
// Invariant: what is recorded is never replaced by a promise or an accept.
// Without that a second list of nodes could win over this node, and both sets
// would count its vote.
//
// Invariant: a node that has accepted a configuration, or has left its set, has
// no marker, so it refuses each request. A node that enters a set, or gets its
// place back, votes after its guard time only. It may have given votes that it
// has forgotten.

// Step performs a step of the register, and returns what the node stores
// afterwards. fresh is the incarnation to use if the node begins a new one.
func (n *Node) Step(now int64, s nodeset.RecordStep, fresh protocol.Incarnation) nodeset.NodeSet {
	n.step(now, s, fresh)
	if n.set.Text = ""; n.set.Config != nil || n.set.Promised != "" || n.set.Life != "" {
		n.set.Text = n.set.String()
	}
	return n.set
}

func (n *Node) step(now int64, s nodeset.RecordStep, fresh protocol.Incarnation) {
	recorded := n.set.Phase == nodeset.SetRecorded
	higher := s.Config != nil && (n.set.Stamp().Epoch() < s.Config.Stamp.Epoch() || n.off(SetHigher))
	switch {
	case s.Kind == nodeset.SetPromise && !recorded && s.Ballot > n.set.Promised:
		n.set.Promised = s.Ballot
	// A word that tells this life of the node's data from the next one: see
	// nodeset.Membership.
	case s.Kind == nodeset.SetLife && n.set.Config == nil && n.set.Life == "":
		n.set.Life = s.Life
	// If the node has not promised this ballot, it has lost its data since.
	case s.Kind == nodeset.SetAccept && !recorded && (s.Ballot == n.set.Promised || n.off(SetPromise)) &&
		(s.Ballot != n.set.Accepted || s.Identity == n.set.Identity):
		n.marked = false
		n.set = nodeset.NodeSet{Promised: s.Ballot, Accepted: s.Ballot, Phase: nodeset.SetAccepted,
			Identity: s.Identity, Config: s.Config}
	// One that says that the node is brand-new is left to the client whose word
	// the node has accepted last: this one may not say so.
	case s.Kind == nodeset.SetCommit && n.set.Config != nil && n.set.Stamp() == s.Config.Stamp &&
		(!s.Ready || s.Ballot == n.set.Accepted):
		if n.begin(now, s.Config, fresh, false); s.Ready && !recorded {
			n.born, n.caughtUp = bornLongAgo, true
		}
		n.set.Phase = nodeset.SetRecorded
	// The marker moves along, so the guard time goes on as it was. The identity
	// must be the same: the step is meant for that member, and another server
	// may be at its address now.
	case s.Kind == nodeset.SetMove && recorded && n.set.Identity == s.Identity && higher:
		n.begin(now, s.Config, fresh, false)
		if s.Enters() {
			n.learnt, n.caughtUp = n.caughtUp, false
		}
		n.set = nodeset.NodeSet{Phase: nodeset.SetRecorded, Identity: s.Identity, Config: s.Config}
	case s.Kind == nodeset.SetRetire && recorded && n.set.Identity == s.Identity && higher:
		n.marked = false
		n.set = nodeset.NodeSet{Phase: nodeset.SetRecorded, Identity: s.Identity, Config: s.Config}
	// The client names what it has read here. Another client's step in between
	// makes that false, and the restore has no effect.
	case s.Kind == nodeset.SetRestore && s.Seen == n.SetText():
		n.begin(now, s.Config, fresh, true)
		n.set = nodeset.NodeSet{Phase: nodeset.SetRecorded, Identity: s.Identity, Config: s.Config}
	}
}

// begin has the node serve a configuration. It begins another incarnation if it
// has forgotten what it did. Its settings are those of the configuration. A
// shorter guard time ends when the longer one would have.
//
// Invariant: a longer guard time counts from the birth of the node's memory,
// also if the shorter one is over (set-guard.txt). The node may have come back
// with an earlier configuration, and have forgotten leases of later ones.
func (n *Node) begin(now int64, c *nodeset.Configuration, fresh protocol.Incarnation, forgotten bool) {
	guard := c.Guard().Milliseconds()
	if !n.marked || forgotten {
		n.Mark(now, fresh)
	} else if guard < n.guardTime || n.off(SetGuard) {
		n.born += n.guardTime - guard
	}
	n.Configure(c.Guard(), c.Retention())
}

// Set returns what the node stores about its set.
func (n *Node) Set() nodeset.NodeSet { return n.set }

// SetText returns that in the scripts' format, or "" if the node stores
// nothing.
func (n *Node) SetText() string { return n.set.Text }
