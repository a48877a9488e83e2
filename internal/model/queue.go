package model

// This file owns the order of the queue and the fence.
//
// Invariant: the fence is the highest ticket that the node has given, and it
// outlives the claim that had it by the retention time. Without that a claim
// could get a ticket below that of a holder that the node no longer knows, and
// a fencing token could fall.

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// enqueue puts a claim into the queue.
func (v *visit) enqueue(c Claim) {
	i := 0
	for i < len(v.claims) && v.claims[i].Ticket <= c.Ticket {
		i++
	}
	v.claims = slices.Insert(v.claims, i, c)
	v.lasts(c.Expiry)
}

// place puts a claim into the queue and raises the fence to its ticket. Only it
// and reclaimed raise the fence, so the claim that was given the fence is
// always known.
func (v *visit) place(c Claim) {
	v.enqueue(c)
	if c.Ticket > v.fence {
		v.fence, v.fenceOf = c.Ticket, c.ID
	}
	v.forgetFence()
}

// forgetFence is what a node without MonotoneFence does after every change.
func (v *visit) forgetFence() {
	if !v.off(MonotoneFence) {
		return
	}
	v.fence, v.fenceOf = 0, protocol.ID{}
	if k := len(v.claims); k > 0 {
		v.fence, v.fenceOf = v.claims[k-1].Ticket, v.claims[k-1].ID
	}
}

// next is the lowest ticket above the fence with the residue of id. Without
// residues two claims could take the same ticket on two nodes again and again,
// and neither would settle.
func (v *visit) next(id protocol.ID) protocol.Ticket {
	if v.off(Residue) {
		return v.fence + 1
	}
	return id.Next(v.fence)
}

// window is how far tickets may be ahead of the node's clock.
func (n *Node) window() protocol.Window {
	return protocol.WindowOf(time.Duration(n.guardTime) * time.Millisecond)
}

// top is the highest ticket that the fence may be raised to now: see
// [visit.claim].
func (v *visit) top() protocol.Ticket { return v.window().Top(v.now) }

// until is how long it takes until the ticket is no longer above top.
func (v *visit) until(t protocol.Ticket) time.Duration {
	micros := int64(t) - v.now*1000 - v.guardTime*500
	return min(time.Duration((micros+999)/1000)*time.Millisecond, protocol.LongestWait)
}

// forged reports whether no client's clock can have given the ticket.
func (v *visit) forged(t protocol.Ticket) bool { return protocol.Forged(t, v.now) && !v.off(FarFuture) }

// hidden: the node would not store the version, so it is forged, or the clock
// was set back since.
func (v *visit) hidden(t protocol.Ticket) bool {
	return v.forged(t) || t > v.top() && !protocol.Forged(t, v.now) && !v.off(NearFuture)
}

// keepFence has the fence outlast what is stored now by the retention time.
func (v *visit) keepFence(t protocol.Terms) {
	v.fenceEnd = v.now + t.TTL.Milliseconds() + v.retention
}

// forgetOld bounds the memory of a node: a million short-lived names must not
// fill it. A later claim gets a higher ticket all the same, as tickets stay
// near the clock. It drops the fence of a name without claims after the
// retention time.
func (v *visit) forgetOld() {
	if len(v.claims) == 0 && v.fenceEnd <= v.now {
		v.fence, v.fenceOf = 0, protocol.ID{}
	}
}

// taken reports whether a claim has the ticket here. Two claims with one ticket
// would have one fencing token.
func (v *visit) taken(t protocol.Ticket) bool {
	return slices.ContainsFunc(v.claims, func(c Claim) bool { return c.Ticket == t })
}

// find returns where a claim is in the queue, -1 if it is not there.
func (v *visit) find(id protocol.ID) int {
	return slices.IndexFunc(v.claims, func(c Claim) bool { return c.ID == id })
}

// unvoted counts the claims that wait here.
func (v *visit) unvoted() int {
	k := 0
	for _, c := range v.claims {
		if !c.Voted {
			k++
		}
	}
	return k
}

func (n *Node) off(r Rules) bool { return n.Off&r != 0 }
