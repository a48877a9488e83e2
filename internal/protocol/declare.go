package protocol

import "slices"

// This file owns what follows when an operator declares the nodes of a list
// new: whether they record their set, and which guard times end.
//
// Invariant: a node that may have forgotten a lease does not vote before that
// lease has ended. It may have if another node of a recorded set votes.

// NodeUse is what a node shows of its use by clients.
type NodeUse uint8

// The uses.
const (
	UseUnknown NodeUse = iota // it has not answered
	UseNone                   // it is not caught up: it is new, or lost its data
	UseMade                   // it is caught up: an operator has declared it new, or a client has repaired it
	UseBegun                  // it has recorded a set, or the recording was begun
)

// Declaration decides what one such call does. It is not safe for concurrent
// use.
type Declaration struct {
	Set   bool // the nodes are to record their set, or have recorded it
	Rules Rules

	idle []Incarnation // of each node when all had been asked and none voted; nil until then
}

// Judge decides whether a set that is not known to be recorded is to be. It
// returns false while that is unknown, as some node has not answered.
//
// Invariant: a set that clients use is left as it is. To record it is safe, but
// ends the work of clients with another list, and of programs that know no
// sets. These have worked well until then, and a deployment may make this call
// each time.
func (d *Declaration) Judge(uses []NodeUse) (known bool) {
	switch {
	case slices.Contains(uses, UseBegun): // no node serves anything before the recording has ended
		d.Set = true
	case slices.Contains(uses, UseMade) && d.Rules.on(RuleLeaveUsed):
	case slices.Contains(uses, UseUnknown):
		return false
	default:
		d.Set = true
	}
	return true
}

// Ends returns which guard time of a node ends: that of an incarnation, or any.
// The zero incarnation stands for none.
//
// Invariant: what the nodes were before the first one was declared decides, and
// it goes for those incarnations. Without that a call that could not declare
// one of the nodes finds the others voting when it tries again, and that node
// stays within its guard time. With a second node down there is no quorum then.
func (d *Declaration) Ends(node int) (of Incarnation, any bool) {
	if !d.Set || !d.Rules.on(RuleKeepGuard) {
		return 0, true
	}
	if node < len(d.idle) {
		return d.idle[node], false
	}
	return 0, false
}

// Declared says that all nodes have been asked to end what Ends said, whether
// one of them votes, and their incarnations by number. It returns false if they
// are to be asked once more.
func (d *Declaration) Declared(votes bool, of []Incarnation) (done bool) {
	if !d.Set || !d.Rules.on(RuleKeepGuard) || d.idle != nil || votes {
		return true
	}
	d.idle = of
	return false
}
