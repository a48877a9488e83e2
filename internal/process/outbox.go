package process

import "github.com/quorate/quorate/internal/protocol"

// A node may have no room for a request yet. The request then waits at the
// client, in the [Backlog] of the node. A newer request of the claim replaces
// one that waits, and a leave withdraws a join that was never sent.
//
//	Step ----> needless: replaced, merged or withdrawn
//	   |
//	   +-----> the link takes it --------------------------> Sent
//	   |
//	   +-----> no room, or others wait ----> MarkWaiting: it is in the backlog
//	                                           ^         | its turn comes
//	                                           |         v
//	                                  no room -+------ Sending --> Sent

// outbox tracks the requests of one claim.
type outbox struct {
	unsent *[32]*protocol.Request // by node: the request that waits for room there; nil while none has
	sent   uint32                 // nodes that may have been sent a request, a bit for each
	flying uint32                 // nodes at which a join or a beat is unanswered, a bit for each
	// Nodes in flying for which a repetition was dropped: one answer serves
	// both.
	merged  uint32
	reached uint32 // nodes that have carried out a request, or may have, a bit for each
	// Nodes known to be free of the claim after its end, a bit for each.
	free  uint32
	ended uint8 // leaves that have been answered or given up
	fresh bool  // requests of this event must not be merged with those in flight
}

// waitingAt returns the request that waits for room at a node, nil if none does.
func (o *outbox) waitingAt(node int) *protocol.Request {
	if o.unsent == nil {
		return nil
	}
	return o.unsent[node]
}

// goes reports whether r goes to its node, at once or when there is room.
// r.Class must be set. It returns false if the request is not needed: it has
// replaced one that waits, is merged with one in flight, or is a leave to a
// node that knows nothing of the claim.
// Invariant: the node gets the requests of a claim in the order in which the
// claim wanted them sent. At most one request waits for each node. A newer one
// takes its place or withdraws it.
func (o *outbox) goes(r *protocol.Request) bool {
	bit, waits := uint32(1)<<r.Node, o.waitingAt(r.Node)
	if waits != nil {
		if r.Op != protocol.OpLeave && r.Class >= waits.Class {
			k := waits.Class
			*waits = *r //mutant:RuleNewest
			waits.Class = k
			return false
		}
		waits.Withdrawn, o.unsent[r.Node] = true, nil //mutant:RuleWithdraw
	}
	if r.Op == protocol.OpLeave &&
		o.sent&bit == 0 { //mutant:RuleLeaveAll=o.sent&bit == 0 || waits != nil
		o.left(r.Node, true) // the node knows nothing of the claim
		return false
	}
	if repeatable(r.Op) && o.flying&bit != 0 && !o.fresh && !r.List { //mutant:RuleMerge
		o.merged |= bit // the answer to the request in flight serves both
		return false
	}
	return true
}

// landed records that r has been answered or has failed.
func (o *outbox) landed(r *protocol.Request) {
	if bit := uint32(1) << r.Node; repeatable(r.Op) && o.flying&bit != 0 {
		r.Merged = r.Merged || o.merged&bit != 0
		o.flying, o.merged = o.flying&^bit, o.merged&^bit
	}
}

// left records that the leave to a node is finished; confirmed says that the
// node is free of the claim.
func (o *outbox) left(node int, confirmed bool) {
	if o.ended++; confirmed {
		o.free |= 1 << node
	}
}

// repeatable reports whether a claim repeats such requests if they are not
// answered in time. On an ordered connection the node would carry out the
// repetition only after the original, so the repetition is not sent. (A claim
// that joins does not beat, so one bit for each node serves both.)
func repeatable(op protocol.Op) bool { return op == protocol.OpJoin || op == protocol.OpBeat }
