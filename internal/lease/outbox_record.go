package lease

import "github.com/quorate/quorate/internal/protocol"

// This file owns what becomes of the requests that one operation on a record
// wants sent. It is to a [RegisterOp] what outbox.go of process is to an
// Attempt, with the same Backlog and the same ways: Offer, then Departed or
// Waits, and Depart when the turn of what waits has come.

type recordOutbox struct {
	rules  protocol.Rules
	unsent *[32]*protocol.Request // by node: the request that waits for room there; nil while none has
	ended  bool                   // it is decided, or given up
}

// Offer decides about r, which the operation wants sent. behind reports whether
// requests of a class wait at the node, or more urgent ones. r gets its class.
// Invariant: at most one request of an operation waits for a node. A newer one
// takes its place, so what waits is not more than the operations that callers
// wait for.
func (o *recordOutbox) Offer(r *protocol.Request, behind func(protocol.Class) bool) protocol.Sending {
	if o.unsent != nil && o.unsent[r.Node] != nil {
		waits := o.unsent[r.Node]
		k := waits.Class
		*waits = *r
		waits.Class = k
		return protocol.Drop
	}
	r.Class = ClassOfRecord(r, o.rules)
	if behind(r.Class) {
		return protocol.Wait
	}
	return protocol.Hand
}

// ClassOfRecord returns the class of a request of an operation on a record.
// Invariant: an erasure is in the class of the leaves, so a claim's leave never
// comes before the erasure that its holder wanted sent first.
func ClassOfRecord(r *protocol.Request, rules protocol.Rules) protocol.Class {
	switch {
	case !rules.On(protocol.RuleRecordsWait):
		return protocol.Certain
	case r.Op == protocol.OpPut && r.Stored.Erased:
		return protocol.Renewals
	}
	return protocol.Records
}

// Waits says that r, which stays where it is, has to wait for room.
func (o *recordOutbox) Waits(r *protocol.Request) {
	if o.unsent == nil {
		o.unsent = new([32]*protocol.Request)
	}
	o.unsent[r.Node] = r
}

// Depart reports whether r, whose turn has come, is still to be sent. An
// erasure is sent though its operation is over, since the caller of Retire does
// not wait for it.
func (o *recordOutbox) Depart(r *protocol.Request) (ok bool) {
	return !o.ended || r.Class == protocol.Renewals
}

// Departed says that a link was handed r. The link had room.
func (o *recordOutbox) Departed(r *protocol.Request) {
	if o.unsent != nil && o.unsent[r.Node] == r {
		o.unsent[r.Node] = nil
	}
}

func (o *recordOutbox) End() { o.ended = true }
