package model

// Handling the requests of claims: join, settle, beat and leave. How much work
// one request does, and what it reports about other claims, is in portion.go.
//
// Invariant: the fence is the highest ticket that the node has given, and it
// outlives the claim that had it by the retention time. Otherwise a claim could
// get a lower ticket than a holder that the node no longer knows, and a fencing
// token could decrease.
//
// Every request runs in the same order: the marker, the guard time, the end of
// leases, votes that have become possible, the request itself, votes again. The
// order is the scripts' too, and the answers depend on it: a request must see
// the queue as if each lease had been dropped at the moment of its end.

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Handle processes one request at now, and returns the answer and the pushes
// that it triggered.
func (n *Name) Handle(now int64, t protocol.Terms, owner string,
	r protocol.Request) (protocol.Answer, []Out) {
	v := &turn{node: n.node, n: n, now: now, self: t.ID, counting: t.Counting && r.Op < protocol.OpRead}
	a := v.handle(t, owner, r)
	if r.Op != protocol.OpLeave {
		a.Clock = now * 1000
	}
	for i := range v.outs {
		v.outs[i].Push.Clock = now * 1000
	}
	return a, v.outs
}

// handle passes the request on if the node votes.
func (v *turn) handle(t protocol.Terms, owner string, r protocol.Request) protocol.Answer {
	// Invariant: a node serves only the claims of its own configuration. Otherwise
	// two configurations could both count its vote. A node that has lost its
	// marker serves none. Removing a claim is always safe.
	if v.node.Refuses() {
		if r.Op == protocol.OpLeave {
			v.remove(t)
			v.n.notifiedUpTo = 0
			return protocol.Answer{Status: protocol.OK}
		}
		return protocol.Answer{Status: protocol.OtherSet}
	}
	rest := v.node.Recovering(v.now)
	if rest == 0 && v.counting && !v.node.caughtUp && !v.node.learnt && !v.node.off(ResizeKnown) {
		// It may have lost a Resize. Its wait for the repair is bounded: with
		// no client to repair it the semaphore must work again.
		rest = min(untilCaughtUp, time.Duration(max(0, v.node.born+2*v.node.guardTime-v.now))*time.Millisecond)
	}
	if v.counting && v.node.hidden(v.now, v.n.limitAt) {
		rest = max(rest, untilCaughtUp) // until the next Resize, or until the clock has passed it
	}
	if rest > 0 && !v.node.off(Guard) {
		if r.Op == protocol.OpSettle && !v.node.off(Reclaim) {
			v.reclaim(t, owner, r)
		}
		if r.Op != protocol.OpLeave {
			return protocol.Answer{Status: protocol.Recovering, Incarnation: v.node.incarnation, Wait: rest}
		}
		// Removing a claim is always safe; voting for the next one is not.
		v.remove(t)
		v.n.notifiedUpTo = 0
		return protocol.Answer{Status: protocol.OK}
	}

	if r.Op >= protocol.OpRead {
		if v.n.storedEnd <= v.now {
			v.n.stored = protocol.Stored{}
		}
		if v.n.promiseEnd <= v.now {
			v.n.promise, v.n.promiseIn = protocol.Version{}, 0
		}
		x := visit{node: v.node, n: v.n, now: v.now}
		a := x.record(t, owner, r)
		v.outs = x.outs
		return a
	}
	if v.counting && v.n.limit > 0 {
		v.n.capacity = v.n.limit // holders keep their permits
	}
	v.votes = v.node.portion()
	v.reclaimed()
	v.purge(t, r.Patient)
	v.forgetOld()
	v.advance()
	a := v.claim(t, owner, r)
	v.resume()
	return a
}

// claim handles a request of a claim at a node that votes. Invariant: a claim
// that is refused (Missing, Clash, Ahead) leaves the queue unchanged.
func (v *turn) claim(t protocol.Terms, owner string, r protocol.Request) protocol.Answer {
	if r.Op == protocol.OpLeave {
		if v.n.find(t.ID) >= 0 {
			v.keepFence(t)
		}
		v.remove(t)
		v.advance()
		return protocol.Answer{Status: protocol.OK}
	}

	waiting := v.n.unvoted()
	i := v.n.find(t.ID)
	switch {
	case r.Op == protocol.OpBeat && i < 0:
		return protocol.Answer{Status: protocol.Missing, Incarnation: v.node.incarnation, Ticket: v.n.fence}
	case r.Op == protocol.OpBeat:
		v.refresh(i, t)
	case len(v.n.claims) > 0 && v.n.capacity != t.Capacity && !v.resized():
		return protocol.Answer{Status: protocol.Clash, Incarnation: v.node.incarnation, Capacity: v.n.capacity}
	case v.target(i, t.ID, r) > max(v.n.fence, v.node.top(v.now)) && !v.node.off(Top):
		// The bound is half of the guard time ahead of the clock. So a node
		// that loses its data and votes again a guard time later gives no
		// ticket below the fence that it lost.
		wait := v.until(v.target(i, t.ID, r))
		return protocol.Answer{Status: protocol.Ahead, Incarnation: v.node.incarnation, Wait: wait}
	case i < 0:
		if v.n.capacity = t.Capacity; v.resized() {
			v.n.capacity = v.n.limit
		}
		v.insert(t, owner, r)
	case r.Op == protocol.OpSettle:
		v.settle(i, t, r)
	default: // a join that was here before
		v.refresh(i, t)
	}
	v.advance()

	i = v.n.find(t.ID)
	listens := func(c Claim) bool { return c.Voted && c.Notify }
	if !v.n.claims[i].Voted && waiting == 0 && slices.ContainsFunc(v.n.claims, listens) {
		// It is the first to wait, so holders may want to make room.
		v.notifying, v.n.notifiedUpTo = true, 0
	}
	from := protocol.Ticket(0)
	if r.Op == protocol.OpBeat {
		from = r.Ticket
	}
	return v.answer(i, r.List, from, t.TTL)
}

// target returns the ticket that a join or a settle gives to claim i; i is -1
// if the claim is unknown. That is inserted at T0 if that is above the fence,
// by a settle also at the fence if this very claim had been given it. A known
// claim only ever moves to a higher ticket, and only by a settle.
func (v *turn) target(i int, id protocol.ID, r protocol.Request) protocol.Ticket {
	ticket := r.Ticket
	if i >= 0 {
		switch {
		case r.Op != protocol.OpSettle || v.n.claims[i].Ticket >= ticket:
			return v.n.claims[i].Ticket
		// The fence was given to another: had it been this claim's, it would be
		// there. That one may have left, but it can come back to it, and may
		// have held it.
		case (ticket == v.n.fence || v.n.taken(ticket)) && !v.node.off(Equality):
			return v.next(id)
		}
		return ticket
	}
	free := ticket > v.n.fence
	if r.Op == protocol.OpSettle {
		switch {
		case ticket == v.n.fence:
			free = v.n.fenceOf == id || v.node.off(Equality)
		case ticket < v.n.fence:
			free = v.node.off(InsertAboveFence) && (!v.n.taken(ticket) || v.node.off(Equality))
		}
	}
	if !free {
		return v.next(id)
	}
	return ticket
}

// insert stores an unknown claim, without a vote: advance gives it. A vote is
// given in one place only, so the order of tickets cannot be passed over.
func (v *turn) insert(t protocol.Terms, owner string, r protocol.Request) {
	v.keepFence(t)
	v.place(Claim{
		ID: t.ID, Ticket: v.target(-1, t.ID, r), Weight: t.Weight, Expiry: v.now + t.TTL.Milliseconds(),
		Owner: owner, Notify: t.Notify,
	})
}

// reclaim takes back a claim that has settled on other nodes, or keeps its
// lease alive. So the claim is back in its place when the guard time ends.
// Without that a claim with a higher ticket could be there first, and the node
// would not take the other one at its ticket any more (InsertAboveFence): a
// holder would lose the majority when the next node lost its data.
//
// Invariant: no claim has a view of this queue of this incarnation that is
// still counted. So none lacks the claim, whatever its ticket. The fence shows
// that: it is 0 until the node serves the name, and then outlives all that it
// has answered.
func (v *turn) reclaim(t protocol.Terms, owner string, r protocol.Request) {
	i := v.n.find(t.ID)
	switch {
	case i >= 0 && v.n.claims[i].Ticket == r.Ticket:
		v.keepFence(t)
		v.n.claims[i].Expiry = v.now + t.TTL.Milliseconds()
		v.n.lasts(v.n.claims[i].Expiry)
	case i >= 0 || v.n.fence > 0 && !v.node.off(InsertAboveFence) || r.Ticket == 0 || v.n.taken(r.Ticket):
	case r.Ticket > v.node.top(v.now) && !v.node.off(Top):
	case len(v.n.claims) > 0 && v.n.capacity != t.Capacity && !v.resized():
	default:
		if v.n.capacity = t.Capacity; v.resized() {
			v.n.capacity = v.n.limit
		}
		v.keepFence(t)
		v.n.enqueue(Claim{
			ID: t.ID, Ticket: r.Ticket, Weight: t.Weight, Expiry: v.now + t.TTL.Milliseconds(),
			Owner: owner, Notify: t.Notify,
		})
	}
}

// settle moves the known claim i to ticket T, or to the next free ticket above
// it.
// Invariant: a claim's ticket only rises. If it fell, the claim could move
// before claims that have votes, and the views of these would lack it.
func (v *turn) settle(i int, t protocol.Terms, r protocol.Request) {
	ticket := v.target(i, t.ID, r)
	v.n.claims[i].Weight = min(v.n.claims[i].Weight, t.Weight) // a holder may give back a part
	if v.n.claims[i].Ticket == ticket {
		if !v.node.off(SettleRefresh) {
			v.refresh(i, t)
		}
		return
	}
	v.keepFence(t)
	c := v.n.claims[i]
	v.n.claims = slices.Delete(v.n.claims, i, i+1)
	// Invariant: votes go to the claims in the order of their tickets. At its
	// new place the claim needs a new vote, as it may have moved behind others.
	// It keeps its vote while a claim behind it has one: after a Resize to
	// fewer permits it could not get the vote back, and would lose what the
	// others keep.
	v.n.Redlock.release(c.ID)
	behind := func(o Claim) bool { return o.Voted && o.Ticket > ticket }
	c.Ticket, c.Voted = ticket, c.Voted && slices.ContainsFunc(v.n.claims, behind)
	if !v.node.off(SettleRefresh) {
		c.Expiry = v.now + t.TTL.Milliseconds()
	}
	v.place(c)
}

// refresh renews the lease of claim i, and of the redlock key if the claim has
// a mutex's vote. If another client has taken the key meanwhile, the claim
// loses its vote.
func (v *turn) refresh(i int, t protocol.Terms) {
	v.keepFence(t)
	c := &v.n.claims[i]
	c.Expiry = v.now + t.TTL.Milliseconds()
	v.n.lasts(c.Expiry)
	if v.hasRedlockKey() && c.Voted {
		c.Voted = v.n.Redlock.take(v.now, c)
	}
}

// remove never refuses, because removing a claim is safe in any state of the
// node. It removes the claim, and also the Redlock key if that belongs to the
// claim. It looks at the key even if the claim is unknown, because one may have
// been lost without the other.
func (v *turn) remove(t protocol.Terms) {
	if i := v.n.find(t.ID); i >= 0 {
		v.n.claims = slices.Delete(v.n.claims, i, i+1)
		v.forgetFence()
	}
	if t.Capacity == 1 && !v.counting {
		v.n.Redlock.release(t.ID)
	}
}

// until returns how long it takes until the ticket is no longer above top.
func (v *turn) until(t protocol.Ticket) time.Duration {
	micros := int64(t) - v.now*1000 - v.node.guardTime*500
	return min(time.Duration((micros+999)/1000)*time.Millisecond, protocol.LongestWait)
}

// place puts a claim into the queue and raises the fence to its ticket. Only it
// and reclaimed raise the fence, so the claim that was given the fence is
// always known.
func (v *turn) place(c Claim) {
	v.n.enqueue(c)
	if c.Ticket > v.n.fence {
		v.n.fence, v.n.fenceOf = c.Ticket, c.ID
	}
	v.forgetFence()
}

// next is the lowest ticket above the fence with the residue of id. Without
// residues two claims could take the same ticket on two nodes again and again,
// and neither would settle.
func (v *turn) next(id protocol.ID) protocol.Ticket {
	if v.node.off(Residue) {
		return v.n.fence + 1
	}
	return id.Next(v.n.fence)
}

// keepFence makes the fence outlast everything that is stored now by the
// retention time.
func (v *turn) keepFence(t protocol.Terms) {
	v.n.fenceEnd = v.now + t.TTL.Milliseconds() + v.node.retention
}

// forgetOld limits the memory of a node: a million short-lived names must not
// fill it. A later claim still gets a higher ticket, because tickets stay near
// the clock. It drops the fence of a name, and what is left of claims whose
// leases have ended, after the retention time.
func (v *turn) forgetOld() {
	if v.n.fenceEnd <= v.now && !v.n.anyLives(v.now) {
		v.n.claims, v.n.fence, v.n.fenceOf = nil, 0, protocol.ID{}
	}
}
