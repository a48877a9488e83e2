package repair

import (
	"github.com/quorate/quorate/internal/protocol"
	"math/bits"
)

// This file owns when one more node may be restarted.
//
// Invariant: at most a minority of the nodes lacks its data at a time. A node
// that lost its data counts as one of that minority until it is caught up, not
// until it votes. A node that votes and is not caught up cannot attest.

// NodeHealth is what an onlooker has seen of a node.
type NodeHealth struct {
	Votes    bool // it answers, as a master, and its guard time is over
	CaughtUp bool
}

// MayRestart reports whether one more node may be restarted, or lost with its
// data: a majority of each set that counts goes on to vote without it, and is
// caught up. nodes are by their numbers in sets. Without redundancy, in a set
// of one node or two, no restart keeps a majority. Then it reports whether all
// is well.
//
// Invariant: while nodes are being exchanged, each of the two sets can spare a
// node. A node that enters and has no vote yet counts for nothing.
func MayRestart(r protocol.Rules, nodes []NodeHealth, sets protocol.Quorums) bool {
	well := uint32(0)
	for i, n := range nodes {
		if n.Votes && (n.CaughtUp || !r.On(protocol.RuleSpareCaughtUp)) {
			well |= 1 << i
		}
	}
	if !r.On(protocol.RuleSpareEach) {
		sets = protocol.Quorums{Present: 1<<len(nodes) - 1}
	}
	for _, set := range sets.Each() {
		need := set.Need()
		if r.On(protocol.RuleSpareOne) {
			need = min(need+1, bits.OnesCount32(set.Present))
		}
		if bits.OnesCount32(set.Present&well) < need {
			return false
		}
	}
	return true
}
