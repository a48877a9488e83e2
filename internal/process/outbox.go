package process

import "github.com/quorate/quorate/internal/protocol"

// This file owns what becomes of the requests that one claim wants sent. A node
// may have no room for a request yet. Then the request waits at the client, in
// the [Backlog] of the node. What waits is a wish: a newer request replaces an
// older one, and a leave withdraws a join that was never sent.
//
//	Step ----> needless: replaced, merged or withdrawn
//	   |
//	   +-----> the link takes it --------------------------> Departed
//	   |
//	   +-----> no room, or others wait ----> Waits: it is in the backlog
//	                                           ^         | its turn comes
//	                                           |         v
//	                                  no room -+------ Depart --> Departed

type outbox struct {
	unsent  *[32]*protocol.Request // by node: the request that waits for room there; nil while none has
	sent    uint32                 // nodes that may have been sent something, a bit for each
	flying  uint32                 // nodes at which a join or a beat is unanswered, a bit for each
	merged  uint32                 // and was not repeated
	reached uint32                 // nodes that have carried out a request, or may have, a bit for each
	free    uint32                 // nodes that are known to be free of the claim after its end, a bit for each
	ended   uint8                  // leaves that have been answered or given up
	fresh   bool                   // what is to be sent now must not be merged with what is under way
}

func (o *outbox) waits(node int) *protocol.Request {
	if o.unsent == nil {
		return nil
	}
	return o.unsent[node]
}

// goes decides about r, which has its class, and reports whether it goes to its
// node: at once, or when there is room.
// Invariant: the node gets a claim's requests in the order in which the claim
// wanted them sent. At most one waits. It is replaced in its place, or
// withdrawn.
func (o *outbox) goes(r *protocol.Request) bool {
	bit, waits := uint32(1)<<r.Node, o.waits(r.Node)
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
		o.merged |= bit // the answer to the one that is under way serves for both
		return false
	}
	return true
}

// landed says that r has been answered or has failed.
func (o *outbox) landed(r *protocol.Request) {
	if bit := uint32(1) << r.Node; repeatable(r.Op) && o.flying&bit != 0 {
		r.Merged = r.Merged || o.merged&bit != 0
		o.flying, o.merged = o.flying&^bit, o.merged&^bit
	}
}

func (o *outbox) left(node int, confirmed bool) {
	if o.ended++; confirmed {
		o.free |= 1 << node
	}
}

// repeatable reports whether a claim sends such requests again when they are
// not answered in time. On an ordered connection the repetition would only be
// carried out after the first one. So it is not sent. (A claim that joins does
// not beat, so one bit for each node is enough for both.)
func repeatable(op protocol.Op) bool { return op == protocol.OpJoin || op == protocol.OpBeat }
