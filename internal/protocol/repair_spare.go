package protocol

// This file owns when one more node may be restarted.
//
// Invariant: at most a minority of the nodes lacks its data at a time. A node that lost
// its data counts as one of that minority until it is caught up, not until it votes. A
// node that votes and is not caught up cannot attest. If the next node lost its data
// then, no attesting quorum would be left, and what only these two had would be lost.

// NodeHealth is what an onlooker has seen of a node.
type NodeHealth struct {
	Votes    bool // it answers, as a master, and its guard time is over
	CaughtUp bool
}

// MayRestart reports whether one node more may be restarted, or lost with its data:
// a majority goes on to vote without it, and is caught up. Without redundancy, with one
// node or two, no restart keeps a majority. Then it reports whether all is well.
func (r Rules) MayRestart(nodes []NodeHealth) bool {
	caughtUp, need := 0, len(nodes)/2+1
	for _, n := range nodes {
		if n.Votes && (n.CaughtUp || !r.on(RuleSpareCaughtUp)) {
			caughtUp++
		}
	}
	if r.on(RuleSpareOne) {
		need = min(need+1, len(nodes))
	}
	return caughtUp >= need
}
