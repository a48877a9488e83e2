package repair

import "github.com/quorate/quorate/internal/protocol"

// This file owns when one more node may be restarted.
// Invariant: at most a minority of the nodes lacks its data at a time. A node
// that lost its data counts as one of that minority until it is caught up, not
// until it votes. A node that votes and is not caught up cannot attest.

// NodeHealth is what an onlooker has seen of a node.
type NodeHealth struct {
	Votes    bool // it answers, as a master, and its guard time is over
	CaughtUp bool
}

// MayRestart reports whether one more node may be restarted, or lost with its
// data: each node of each set that counts votes and is caught up. nodes are by
// their numbers in sets. In a set of one node or two no restart keeps a
// majority; then it reports that all is well.
// Invariant: a set that lacks a node has none to spare. So while nodes are
// being exchanged, neither of the two sets loses its majority.
func MayRestart(r protocol.Rules, nodes []NodeHealth, sets protocol.Quorums) bool {
	well := uint32(0)
	for i, n := range nodes {
		if n.Votes && (n.CaughtUp || !r.On(protocol.RuleSpareCaughtUp)) {
			well |= 1 << i
		}
	}
	return sets.All()&^well == 0
}
