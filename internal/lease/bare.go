package lease

import "github.com/quorate/quorate/internal/protocol"

// Bare returns the nodes that the hold rests on, a bit for each, if losing one
// of them would lose the hold although another node has answered. It returns 0
// if the hold would survive that, and for a claim that is not held.
//
// Take three nodes. Node 3 has lost the holder's claim and given its ticket to a
// waiter, or another library's key is there. It answers each beat, and never
// votes for the holder again. So the hold rests on nodes 1 and 2: when one of
// them is restarted the hold is lost, although two nodes are up all the time.
func (v *State) Bare(now protocol.Time) (rests uint32) {
	all, votes := v.Sets.All(), v.voting(now)
	// A refusal that is an answer, not an error: the node has claims of another
	// capacity. Check shows a node that answers with errors.
	clashes := func(p *peer) bool { return p.refused && p.failures == 0 }
	deaf := v.where(func(p *peer) bool { return p.running(v, now) || clashes(p) }) & all &^ votes
	if v.phase != Holding || deaf == 0 {
		return 0
	}
	for i := range v.peers {
		if bit := uint32(1) << i; votes&all&bit != 0 && !v.Sets.Met(votes&^bit) {
			rests |= bit //mutant:RuleBare
		}
	}
	return rests
}
