package process

import "github.com/quorate/quorate/internal/protocol"

// This file owns what becomes of the requests that one claim wants sent. A node
// may have no room for a request yet. Then the request waits at the client, in
// the [Backlog] of the node. What waits is a wish: a newer request replaces an
// older one, and a leave withdraws a join that was never sent.
//
//	Offer ----> Drop                         nothing is sent
//	   |
//	   +------> Hand --- the link takes it ------------> Departed
//	   |          \----- it has no room ---\
//	   +------> Wait ----------------------+--> Waits -> in the backlog
//	                                       ^               | its turn comes
//	                                       |               v
//	                        no room -------+------------ Depart --> Departed

type outbox struct {
	rules  protocol.Rules
	unsent *[32]*protocol.Request // by node: the request that waits for room there; nil while none has
	sent   uint32                 // nodes that may have been sent something, a bit for each
	flying uint32                 // nodes at which a join or a beat is unanswered, a bit for each
	merged uint32                 // and was not repeated
	free   uint32                 // nodes that are known to be free of the claim after its end, a bit for each
}

func (o *outbox) waits(node int) *protocol.Request {
	if o.unsent == nil {
		return nil
	}
	return o.unsent[node]
}

// Offer decides about r, which the claim wants sent. behind reports whether
// requests of a class wait at the node, or more urgent ones. r gets its class.
// Invariant: the node gets a claim's requests in the order in which the claim
// wanted them sent. At most one waits. It is replaced in its place, or
// withdrawn.
func (a *Attempt) Offer(r *protocol.Request, behind func(protocol.Class) bool) protocol.Sending {
	o, bit := &a.outbox, uint32(1)<<r.Node
	if r.Class = protocol.Waits; o.rules.On(protocol.RuleUrgent) {
		r.Class = ClassOf(a.Phase(), r.Op)
	}
	waits := o.waits(r.Node)
	if waits != nil {
		if r.Op != protocol.OpLeave && r.Class >= waits.Class {
			if o.rules.On(protocol.RuleNewest) {
				k := waits.Class
				*waits = *r
				waits.Class = k
			}
			return protocol.Drop
		}
		if o.rules.On(protocol.RuleWithdraw) {
			waits.Withdrawn, o.unsent[r.Node] = true, nil
		}
	}
	if r.Op == protocol.OpLeave && (o.sent&bit == 0 || waits != nil && !o.rules.On(protocol.RuleLeaveAll)) {
		a.left(r.Node, true) // the node knows nothing of the claim
		return protocol.Drop
	}
	if repeatable(r.Op) && o.flying&bit != 0 && !a.fresh && !r.List && o.rules.On(protocol.RuleMerge) {
		o.merged |= bit // the answer to the one that is under way serves for both
		return protocol.Drop
	}
	if behind(r.Class) {
		return protocol.Wait
	}
	return protocol.Hand
}

// Sent says that all requests of Out were offered. The caller must not use the
// old Out any more.
func (a *Attempt) Sent() {
	a.fresh = false
	a.Claim.Sent()
}

// Waits says that r, which stays where it is, has to wait for room. An attempt
// of which nothing has been sent has not begun.
func (a *Attempt) Waits(r *protocol.Request) {
	if a.unsent == nil {
		a.unsent = new([32]*protocol.Request)
	}
	a.unsent[r.Node] = r
	if a.sent == 0 && a.Rules.On(protocol.RulePostpone) {
		a.Postpone()
	}
}

// Departed says that a link was handed r, which has not moved since, and what
// it did with it. The link had room.
func (a *Attempt) Departed(r *protocol.Request, took protocol.Taking) {
	if a.waits(r.Node) == r {
		a.unsent[r.Node] = nil
	}
	if took != protocol.Accepted {
		return
	}
	if a.Postponed() {
		a.Claim.Begin(r.Sent, a.Ticket())
	}
	bit := uint32(1) << r.Node
	a.sent |= bit
	if repeatable(r.Op) {
		a.flying |= bit
	}
}

// Depart makes r, whose turn has come, what it is to be now. Without ok it is
// not sent: it was withdrawn, or it is a leave that comes too late, as the
// lease has ended by itself.
func (c *Client) Depart(now protocol.Time, a *Attempt, n *Name, r *protocol.Request) (ok bool) {
	switch {
	case r.Withdrawn:
		return false
	case r.Op == protocol.OpLeave:
		if now.Sub(r.Sent) >= a.TTL {
			a.unsent[r.Node] = nil
			a.left(r.Node, false)
			return false
		}
		return true
	}
	if a.Postponed() {
		a.Claim.Begin(now, c.propose(now, a, n))
	}
	if a.Rules.On(protocol.RuleDepart) {
		k := r.Class
		*r = a.Claim.Depart(now, *r)
		r.Class = k
	}
	return true
}

// landed says that r has been answered or has failed.
func (o *outbox) landed(r *protocol.Request) {
	bit := uint32(1) << r.Node
	if !repeatable(r.Op) || o.flying&bit == 0 {
		return
	}
	o.flying &^= bit
	if o.merged&bit != 0 {
		o.merged &^= bit
		r.Merged = true
	}
}

// repeatable reports whether a claim sends such requests again when they are
// not answered in time. On an ordered connection, where each request is
// answered or fails, the repetition would only be carried out after the first
// one. So it is not sent: a node that is late because it has too much to do
// would get several times as much. (A claim that joins does not beat, so one
// bit for each node is enough for both.)
func repeatable(op protocol.Op) bool { return op == protocol.OpJoin || op == protocol.OpBeat }
