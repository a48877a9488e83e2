package model

// The queue of a name's claims.
//
// Invariant: claims are sorted by ticket and the voted ones are a prefix: votes
// go in the order of tickets.

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
)

// queue are the claims of a name.
type queue struct {
	claims []Claim

	// Bounds of all leases, so that a request need not look at every claim to find
	// that none has ended. They may be wider than the leases, which costs one
	// sweep. If they were narrower, a dead claim would keep its weight.
	// No claim's lease ends before; while claims are being dropped, of those up to
	// droppedUpTo.
	firstExpiry  int64
	lastExpiry   int64           // no claim's lease ends later, with the same exception
	droppedUpTo  protocol.Ticket // up to which claims whose lease has ended have been dropped; 0: not under way
	notifiedUpTo protocol.Ticket // up to which holders have heard that a claim waits; 0: not under way
}

// Claim is a claim as a node keeps it.
type Claim struct {
	ID     protocol.ID
	Ticket protocol.Ticket
	Weight uint64
	Expiry int64  // on the node's clock; the claim is dead from then on
	Owner  string // where its pushes go, and its note if it has one
	Notify bool
	Voted  bool
}

// Out is a push on its way to the owner of a claim.
type Out struct {
	Owner string
	Push  protocol.Push
}

// out addresses a push to the channel of the claim's owner.
func (c *Claim) out(p protocol.Push) Out {
	channel, _, _ := strings.Cut(c.Owner, " ")
	return Out{channel, p}
}

// enqueue puts a claim into the queue.
func (v *queue) enqueue(c Claim) {
	i := 0
	for i < len(v.claims) && v.claims[i].Ticket <= c.Ticket {
		i++
	}
	v.claims = slices.Insert(v.claims, i, c)
	v.lasts(c.Expiry)
}

// lasts notes when a claim's lease ends.
func (n *queue) lasts(expiry int64) {
	n.firstExpiry, n.lastExpiry = min(n.firstExpiry, expiry), max(n.lastExpiry, expiry)
}

// find returns the index of a claim in the queue, or -1 if it is not there.
func (v *queue) find(id protocol.ID) int {
	return slices.IndexFunc(v.claims, func(c Claim) bool { return c.ID == id })
}

// taken reports whether a claim has the ticket here. Two claims with the same
// ticket would have the same fencing token.
func (v *queue) taken(t protocol.Ticket) bool {
	return slices.ContainsFunc(v.claims, func(c Claim) bool { return c.Ticket == t })
}

// anyLives reports whether the lease of any claim has not ended.
func (v *queue) anyLives(now int64) bool {
	return slices.ContainsFunc(v.claims, func(c Claim) bool { return c.Expiry > now })
}

// unvoted counts the claims that wait here.
func (v *queue) unvoted() int {
	k := 0
	for _, c := range v.claims {
		if !c.Voted {
			k++
		}
	}
	return k
}

// votesFor reports whether the claim of o is here, at its ticket, with the vote
// and a lease that has not ended. A claim that is not dropped yet, though its
// lease has ended, gives no leave: the next claim may have been admitted
// elsewhere.
func (v *queue) votesFor(now int64, o protocol.Version) bool {
	i := v.find(o.ID)
	return i >= 0 && v.claims[i].Voted && v.claims[i].Ticket == o.Ticket && v.claims[i].Expiry > now
}
