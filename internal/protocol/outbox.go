package protocol

// Outbox decides what becomes of the requests that one claim wants sent. A node may have
// no room for a request yet. Then the request waits at the client, in the Backlog of the
// node. An Outbox is not safe for concurrent use.
//
// What waits is a wish. A newer request replaces an older one, and a leave withdraws a
// join that was never sent. A queue of encoded requests could do neither: what lies in
// it for a second has lost a second of its lease, and comes after the claim's end.
type Outbox struct {
	Rules  Rules
	sent   uint32 // nodes that may have been sent something, a bit for each
	flying uint32 // nodes at which a join or a beat is unanswered, a bit for each
	merged uint32 // and was not repeated
}

// Fate is what becomes of a request.
type Fate uint8

// The fates.
const (
	Transmit Fate = iota // it is sent as soon as its node has room
	Replace              // it takes the place of the claim's request that waits for this node
	Merge                // it is not sent: the answer to one that is under way, or waits, serves for both
	Needless             // it is not sent: the node knows nothing of the claim
)

// Class returns the class of a request of a claim in that phase.
func (o *Outbox) Class(phase Phase, op Op) Class {
	if !o.Rules.on(RuleUrgent) {
		return Waits
	}
	return ClassOf(phase, op)
}

// Offer decides about r, of class k, which the claim wants sent. waits is the class of the
// claim's request that waits for the same node, nil if none does. A fresh r must not be
// merged with a request that is under way. If withdraw is reported, the request that waits
// must not be sent.
//
// Invariant: the node gets a claim's requests in the order in which the claim wanted
// them sent. At most one waits. It is replaced in its place, or withdrawn.
func (o *Outbox) Offer(r Request, k Class, waits *Class, fresh bool) (f Fate, withdraw bool) {
	bit := uint32(1) << r.Node
	if waits != nil {
		if r.Op != OpLeave && k >= *waits {
			if !o.Rules.on(RuleNewest) {
				return Merge, false
			}
			return Replace, false
		}
		withdraw = o.Rules.on(RuleWithdraw)
	}
	if r.Op == OpLeave && (o.sent&bit == 0 || waits != nil && !o.Rules.on(RuleOwed)) {
		return Needless, withdraw
	}
	if repeatable(r.Op) && o.flying&bit != 0 && !fresh && !r.List && o.Rules.on(RuleMerge) {
		o.merged |= bit
		return Merge, withdraw
	}
	return Transmit, withdraw
}

// Depart returns r, which has waited, as it is to be sent now. It reports false for a
// leave that comes too late: the lease has ended by itself. propose returns a ticket for
// a claim that begins now.
func (o *Outbox) Depart(c *Claim, now Time, r Request, propose func() Ticket) (Request, bool) {
	if r.Op == OpLeave {
		return r, now.Sub(r.Sent) < c.TTL
	}
	if c.Postponed() {
		c.Begin(now, propose())
	}
	if !o.Rules.on(RuleDepart) {
		return r, true
	}
	return c.Depart(now, r), true
}

// NoRoom says that a request of the claim has to wait. An attempt of which nothing has
// been sent has not begun.
func (o *Outbox) NoRoom(c *Claim) {
	if o.sent == 0 && o.Rules.on(RulePostpone) {
		c.Postpone()
	}
}

// Departed says that the node may get r.
func (o *Outbox) Departed(c *Claim, r Request) {
	if c.Postponed() {
		c.Begin(r.Sent, c.Ticket())
	}
	bit := uint32(1) << r.Node
	o.sent |= bit
	if repeatable(r.Op) {
		o.flying |= bit
	}
}

// Landed says that r has been answered or has failed.
func (o *Outbox) Landed(r *Request) {
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

// repeatable reports whether a claim sends such requests again when they are not answered
// in time. On an ordered connection, where each request is answered or fails, the
// repetition would only be carried out after the first one. So it is not sent: a node
// that is late because it has too much to do would get several times as much. (A claim
// that joins does not beat, so one bit for each node is enough for both.)
func repeatable(op Op) bool { return op == OpJoin || op == OpBeat }
