package lease

import "github.com/quorate/quorate/internal/protocol"

// This file owns what becomes of the requests that one operation on a record
// wants sent. It is to a [RegisterOp] what outbox.go of process is to an
// Attempt, with the same Backlog and the same ways: Offer, then Departed or
// Waits, and Depart when the turn of what waits has come.

// Offer decides about r, which the operation wants sent. behind reports whether
// requests of a class wait at the node, or more urgent ones. r gets its class.
// Invariant: at most one request of an operation waits for a node. A newer one
// takes its place, so what waits is not more than the operations that callers
// wait for.
func (q *RegisterOp) Offer(r *protocol.Request, behind func(protocol.Class) bool) protocol.Sending {
	if q.unsent != nil && q.unsent[r.Node] != nil {
		waits := q.unsent[r.Node]
		k := waits.Class
		*waits = *r
		waits.Class = k
		return protocol.Drop
	}
	r.Class = ClassOfRecord(q)
	if behind(r.Class) {
		return protocol.Wait
	}
	return protocol.Hand
}

// ClassOfRecord returns the class of the requests of an operation on a record.
// Invariant: an erasure is in the class of the leaves, so a claim's leave never
// comes before the erasure that its holder wanted sent first.
func ClassOfRecord(q *RegisterOp) protocol.Class {
	switch {
	case !q.Rules.On(protocol.RuleRecordsWait):
		return protocol.Certain
	case q.Op == protocol.OpPut && q.Stored.Erased:
		return protocol.Renewals
	}
	return protocol.Records
}

// Waits says that r, which stays where it is, has to wait for room.
func (q *RegisterOp) Waits(r *protocol.Request) {
	if q.unsent == nil {
		q.unsent = new([32]*protocol.Request)
	}
	q.unsent[r.Node] = r
}

// Depart reports whether r, whose turn has come, is still to be sent. An
// erasure is sent though its operation is over, since the caller of Retire does
// not wait for it.
func (q *RegisterOp) Depart(r *protocol.Request) (ok bool) {
	return !q.ended || r.Class == protocol.Renewals
}

// Departed says that a link was handed r. The link had room.
func (q *RegisterOp) Departed(r *protocol.Request) {
	if q.unsent != nil && q.unsent[r.Node] == r {
		q.unsent[r.Node] = nil
	}
}

func (q *RegisterOp) End() { q.ended = true }
