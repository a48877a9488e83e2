package protocol

import "math/bits"

// This file owns which nodes make a quorum.
//
// Invariant: two quorums of the same Quorums have a common node in each set. So
// a claim that is admitted meets each claim that was admitted by one of the
// sets alone.

// Quorums says which nodes make a quorum: a majority of each of its sets. There
// is one set, or, while the nodes are being exchanged, the set of before and
// the set that follows. Nodes are numbered, a bit for each. A node in none of
// the sets has no vote.
type Quorums struct {
	Present uint32
	Next    uint32 // 0: there is one set
}

// Majority is a majority of so many nodes.
func Majority(nodes int) Quorums { return Quorums{Present: 1<<nodes - 1} }

// Met reports whether the nodes make a quorum.
func (q Quorums) Met(nodes uint32) bool {
	return Most(q.Present, nodes) && (q.Next == 0 || Most(q.Next, nodes))
}

// Blocked reports whether no quorum is left without these nodes.
func (q Quorums) Blocked(nodes uint32) bool { return !q.Met(^nodes) }

// Attested reports whether the nodes have a majority of the nodes that can
// attest what is not recorded: those that counted before, while nodes are being
// exchanged.
func (q Quorums) Attested(nodes uint32) bool { return Most(q.Present, nodes) }

// Any reports whether the nodes have a majority of one of the sets.
func (q Quorums) Any(nodes uint32) bool {
	return Most(q.Present, nodes) || q.Next != 0 && Most(q.Next, nodes)
}

// All returns the nodes that have a vote.
func (q Quorums) All() uint32 { return q.Present | q.Next }

// Agreed returns the ticket that a quorum gave a claim, and until there is one
// the highest. at says which nodes gave it which. A node whose fence is ahead
// has a claim at a ticket of its own.
func (q Quorums) Agreed(at map[Ticket]uint32) (t Ticket) {
	for ticket, nodes := range at {
		if q.Met(nodes) {
			return ticket
		}
		t = max(t, ticket)
	}
	return t
}

// Need returns how many nodes are needed, of the larger set if there are two.
// It is for messages.
func (q Quorums) Need() int { return max(NeedOf(q.Present), NeedOf(q.Next)) }

// Sets returns the sets. The second one is empty if there is one set only.
func (q Quorums) Sets() [2]uint32 { return [2]uint32{q.Present, q.Next} }

// Most reports whether nodes has a majority of a set.
func Most(set, nodes uint32) bool { return 2*bits.OnesCount32(set&nodes) > bits.OnesCount32(set) }

// NeedOf returns how many nodes of a set are a majority of it.
func NeedOf(set uint32) int { return bits.OnesCount32(set)/2 + 1 }

// MaxNodes is how many numbers there are: sets of nodes have a bit for each.
const MaxNodes = 32
