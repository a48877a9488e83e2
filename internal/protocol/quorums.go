package protocol

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/quorate/quorate/internal/invariant"
)

// Which nodes make a quorum.
//
// Invariant: two quorums of the same Quorums have a common node in each set. So
// a claim that is admitted meets each claim that one of the sets alone
// admitted.

// Quorums says which nodes make a quorum: a majority of each of its sets.
// Normally there is one set. While the nodes are being exchanged there are two,
// the set before the exchange and the set after it. Nodes are numbered, and a
// set has a bit for each. A node in none of the sets has no vote.
type Quorums struct {
	Present uint32 // the current set; during an exchange, the set before it
	Next    uint32 // during an exchange, the set after it; otherwise 0
}

// Majority returns the quorums of a single set: a majority of the nodes 0 to
// nodes-1.
func Majority(nodes int) Quorums { return Quorums{Present: 1<<nodes - 1} }

// Met reports whether the nodes make a quorum.
func (q Quorums) Met(nodes uint32) bool {
	return Most(q.Present, nodes) && (q.Next == 0 || Most(q.Next, nodes))
}

// Blocked reports whether there is no quorum without these nodes.
func (q Quorums) Blocked(nodes uint32) bool { return !q.Met(^nodes) }

// Attested reports whether nodes include a majority of those that can attest
// that something is not recorded. During an exchange, these are the nodes of
// the set before it, because the new ones may not have been brought everything
// yet.
func (q Quorums) Attested(nodes uint32) bool { return Most(q.Present, nodes) }

// AllAttested reports whether nodes contains every node that can attest, so
// that no other node is left to ask.
func (q Quorums) AllAttested(nodes uint32) bool { return q.Present&^nodes == 0 }

// Any reports whether nodes include a majority of at least one of the sets. It
// is for the question whether a claim could be held: another client may know
// only one of the sets, and admit its claim by that set alone. It must never be
// used to admit a claim: that takes Met.
func (q Quorums) Any(nodes uint32) bool {
	return Most(q.Present, nodes) || q.Next != 0 && Most(q.Next, nodes)
}

// All returns the nodes that have a vote.
func (q Quorums) All() uint32 { return q.Present | q.Next }

// DisplayTicket returns the ticket to show for another client's claim: the one at
// which a quorum has it, or the highest one if no quorum agrees yet. at maps each
// ticket to the nodes that have the claim at it. Nodes can differ: one whose
// fence is ahead gives a ticket of its own. Only displays use the result. A
// claim settles its own ticket by the rules in package lease.
func (q Quorums) DisplayTicket(at map[Ticket]uint32) (t Ticket) {
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

// Count returns how many of the nodes count toward Need. They make a quorum if
// these are enough. If there are two sets, the one that has fewer nodes to spare
// decides. It is for messages.
func (q Quorums) Count(nodes uint32) int {
	spare := bits.OnesCount32(q.Present&nodes) - NeedOf(q.Present)
	if q.Next != 0 {
		spare = min(spare, bits.OnesCount32(q.Next&nodes)-NeedOf(q.Next))
	}
	return q.Need() + spare
}

// Each reports whether cond is true of each set.
func (q Quorums) Each(cond func(set uint32) bool) bool {
	return cond(q.Present) && (q.Next == 0 || cond(q.Next))
}

// Exchanging reports whether there are two sets.
func (q Quorums) Exchanging() bool { return q.Next != 0 }

// Reached returns the highest value that a quorum of these nodes has or
// exceeds: of each set the q-th highest value, and the lower one of the two. It
// returns false if these nodes make no quorum.
//
// Take nodes A, B and C with leases that end at 5, 9 and 7. Two of them keep the
// claim until 7.
func Reached[T cmp.Ordered](q Quorums, nodes uint32, value func(node int) T) (v T, ok bool) {
	if !q.Met(nodes) {
		return v, false
	}
	v = reachedIn(q.Present, nodes, value)
	if q.Next != 0 {
		v = min(v, reachedIn(q.Next, nodes, value))
	}
	return v, true
}

// reachedIn is Reached for one set.
func reachedIn[T cmp.Ordered](set, nodes uint32, value func(node int) T) T {
	var buf [9]T
	values := buf[:0]
	for rest := set & nodes; rest != 0; rest &= rest - 1 {
		values = append(values, value(bits.TrailingZeros32(rest)))
	}
	slices.Sort(values)
	v := values[len(values)-NeedOf(set)]
	if invariant.On {
		have := uint32(0)
		for i := range MaxNodes {
			if nodes&(1<<i) != 0 && value(i) >= v {
				have |= 1 << i
			}
		}
		invariant.Check(Most(set, have), "a majority has the value that is reached, or exceeds it")
	}
	return v
}

// Most reports whether nodes include a majority of set.
func Most(set, nodes uint32) bool {
	most := 2*bits.OnesCount32(set&nodes) > bits.OnesCount32(set)
	if invariant.On {
		rest := bits.OnesCount32(set &^ nodes)
		invariant.Check(!most || 2*rest < bits.OnesCount32(set), "two majorities of a set have a common node")
	}
	return most
}

// NeedOf returns how many nodes are a majority of set.
func NeedOf(set uint32) int { return bits.OnesCount32(set)/2 + 1 }

// MaxNodes is the number of possible node numbers, one bit each in a set.
const MaxNodes = 32
