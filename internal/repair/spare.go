package repair

import "github.com/quorate/quorate/internal/protocol"

// NodeHealth is what an onlooker has seen of a node.
type NodeHealth struct {
	Votes    bool // it answers, as a master, and its guard time is over
	CaughtUp bool
}

// MayRestart reports whether one more node may be restarted, or lost along with
// its data: every node of each current set votes and is caught up. nodes is
// indexed by the numbers in sets. In a set of one or two nodes, no restart
// keeps a majority; then MayRestart just reports whether all is well.
func MayRestart(nodes []NodeHealth, sets protocol.Quorums) bool {
	well := uint32(0)
	for i, n := range nodes {
		if n.Votes && n.CaughtUp { //mutant:RuleSpareCaughtUp=n.Votes
			well |= 1 << i
		}
	}
	return sets.All()&^well == 0
}
