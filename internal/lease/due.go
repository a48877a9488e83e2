package lease

import "github.com/quorate/quorate/internal/protocol"

// When a claim asks its nodes again without having heard from them, and whether
// such a request may have claims dropped.

// placeEnds returns when the claim loses its place in the queue: its leases have
// ended on too many nodes.
func (v *State) placeEnds() protocol.Time {
	return v.quorumDeadline(v.where(func(p *peer) bool { return p.held }))
}

// hinted returns when enough nodes may vote for the claim to have q votes, by
// their hints: each node says when the leases ahead of the claim end there.
// Only nodes that hold the claim at T are used, since a vote at another ticket
// does not count.
func (v *State) hinted() protocol.Time { //mutant:RuleHint=protocol.Never
	votes, hints := uint32(0), uint32(0)
	for i := range v.peers {
		switch p := &v.peers[i]; {
		case !p.held || p.ticket != v.ticket:
		case p.vote:
			votes |= 1 << i
		case p.pendingSince == 0 && p.hinted:
			hints |= 1 << i
		}
	}
	if v.Sets.Met(votes) {
		return protocol.Never
	}
	// The first moment at which q nodes vote is the q-th lowest, with 0 for a
	// node that votes now. Reached takes the q-th highest.
	at, ok := protocol.Reached(v.Sets, votes|hints, func(i int) protocol.Time {
		if votes&(1<<i) != 0 {
			return 0
		}
		return -v.peers[i].askAt
	})
	if !ok {
		return protocol.Never
	}
	return -at
}

// lapsed reports whether the newest answer of the node says that the leases
// ahead of the claim have ended there.
func (p *peer) lapsed(v *State, now protocol.Time) bool {
	return p.running(v, now) && !p.vote && p.failures == 0 && p.ended
}

// insists reports whether a request to node i may make the node drop claims
// whose lease has ended. Take three nodes, a holder, and a waiter. Node 3 hangs
// for longer than a lease, so both leases have ended there when it goes on.
// Nodes 1 and 2 have told the waiter that the holder's lease runs, so the
// waiter could not use the vote of node 3. It renews its place there, and the
// holder, whose beat comes a moment later, is still ahead of it. When the
// holder dies, its leases end at nodes 1 and 2 as well: then the waiter
// insists.
// Invariant: q nodes vote for the claim or have said that the leases ahead of
// it have ended. So a claim insists only where the vote may make it a holder,
// or where a holder lacks the vote: it is lost with the next node otherwise.
//
// A prediction by a node is not the same as its report. A request that insists
// on a prediction may wait at a node that has just hung, and would drop the
// holder there when the node goes on.
//
// A request for a list insists as well: the claims in a list count, so a dead
// claim in it could keep another claim out forever, or end a hold. A request to
// a node that has refused the claim insists too, because the node may have
// refused because of a dead claim with another capacity.
func (v *State) insists(now protocol.Time, i int, list bool) bool { //mutant:RulePatient=true
	switch {
	case list || v.peers[i].refused: //mutant:RuleInsist
		return true
	case !v.peers[i].lapsed(v, now): //mutant:RuleInsist=true
		return false
	}
	// This counts nodes as hinted does. If a hint came due and no claim
	// insisted because of it, the claim would keep asking without end.
	return v.Sets.Met(v.where(func(p *peer) bool { return p.held && p.vote || p.lapsed(v, now) }))
}

// owesWeight reports whether a hold that is not renewed must still tell a node
// the weight of Shrink.
func (v *State) owesWeight(node int) bool {
	p := &v.peers[node]
	return p.held && p.extra().shrinkPending && v.Absent&(1<<node) == 0
}

// outOfVotes reports whether the nodes asked so far cannot make q votes: too few of
// them vote for the claim or still owe an answer. Then sendDue asks the deferred
// nodes (Fanout.Defer) before their time. A holder has its q votes, so its deferred
// nodes are asked at their time.
func (v *State) outOfVotes(now protocol.Time) bool {
	if v.phase == Holding { //mutant:RuleRest=true
		return false
	}
	votes := uint32(0)
	for i := range v.peers {
		if p := &v.peers[i]; p.pendingSince != 0 || p.vote && p.usable(v, now) {
			votes |= 1 << i
		}
	}
	return !v.Sets.Met(votes)
}
