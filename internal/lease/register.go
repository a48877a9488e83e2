package lease

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// One operation on a record, and the state of its requests. The requests go the
// same way as those of an Attempt (outbox.go in package process), with the same
// Backlog: Goes, then Sent or MarkWaiting, and Sending when a waiting request's
// turn has come.

// Outcome is the result of a RegisterOp.
// Invariant: an outcome is final. Answers that come later change nothing, so
// the caller that has the outcome may be gone.
type Outcome uint8

const (
	Asking  Outcome = iota // not decided yet
	Settled                // a majority has the value, or has agreed on what was read
	// A read found a value on a minority, and a later run keeps the value from
	// reaching a majority.
	Inconclusive
	Superseded // an open or a put that a later run has superseded
	Refused    // too many nodes refuse permanently for q to be reached
)

// RegisterOp is one operation on a record. It asks all nodes, repeats its
// requests to nodes that do not answer, and ends when a majority decides. As
// with Claim, its methods take the time and an event, Out is what to send then,
// and Wake is when it wants a Tick.
type RegisterOp struct {
	Op    protocol.Op // OpRead, OpOpen or OpPut
	First bool        // OpPut: of a run that was not opened, so no node has promised to take it
	Over  bool        // OpPut: its claim has been lost, so no node will vote for it any more
	// How long an answer counts: half of a guard time. See protocol.Group.Fresh.
	Fresh       time.Duration
	Stored      protocol.Stored
	Nodes       int
	Succession  bool             // of the register of SuccessorName
	Sets        protocol.Quorums // the zero value: a majority of Nodes
	Absent      uint32           // nodes that are asked nothing, a bit for each
	NodeTimeout time.Duration
	MaxPause    time.Duration // the longest pause before a node is asked again
	// OpRead: the caller needs Left, so the operation waits for a slow node
	// whose answer matters.
	Alive bool
	All   bool // OpRead: every node that answers must have the newest value in the end
	// OpRead: the node that must have the newest value in the end, counted from
	// 1; 0: none.
	Repair int
	Out    []protocol.Request
	recordOutbox

	outcome Outcome
	// The newest value that any node has shown. It is not yet what is recorded:
	// a minority may have it, from a run that has failed. attest.go decides
	// whether it is adopted, refused or left open.
	newest  protocol.Stored
	promise protocol.Version // the newest promise that any node has shown
	// When the claim of an open or a put was first known to have ended; 0: it
	// has not.
	gone protocol.Time
	// An open or a first put: since when it has been stuck; 0: it is not. Set by
	// stuckTooLong.
	stuckSince protocol.Time
	// An open: only answers to requests sent from this time on count as evidence
	// of a node that has not taken it; 0: no majority has. See judgeWrite.
	evidenceFrom protocol.Time
	peers        []registerPeer
}

// registerPeer is what an operation knows about one node.
type registerPeer struct {
	// An entry counts only while answerSent is recent enough: a node may lose
	// its data, and is then repaired with what the others know at that time.
	entry       protocol.Entry
	answered    bool          // entry is its answer
	taken       bool          // it has taken the open or put, or has what is being repaired
	superseded  bool          // it has refused the open or put because of a later run
	missing     bool          // it does not vote for the claim
	answerSent  protocol.Time // when the request of its newest answer was sent
	repair      bool          // the next request gives it the newest value
	repairTried bool          // it has been given the newest value since it was last read
	refused     bool          // it refuses permanently
	// Answers to requests sent before this time do not count, because another
	// member had the number.
	from         protocol.Time
	pendingSince protocol.Time // when the unanswered request was sent; 0: there is none
	askAt        protocol.Time // when to ask again; 0: not
	failures     int
}

func (q *RegisterOp) Outcome() Outcome { return q.outcome }

type recordOutbox struct {
	unsent *[32]*protocol.Request // by node: the request that waits for room there; nil while none has
	ended  bool                   // the operation is decided, or given up
}

// Goes reports whether r, which the operation wants sent, goes to its node at
// once or when there is room. It returns false if r has replaced a request that
// waits. r gets its class.
// Invariant: at most one request of an operation waits for a node. A newer
// request replaces it, so the backlog is bounded by the number of operations.
func (o *recordOutbox) Goes(r *protocol.Request) bool {
	if o.unsent != nil && o.unsent[r.Node] != nil {
		waits := o.unsent[r.Node]
		k := waits.Class
		*waits = *r
		waits.Class = k
		return false
	}
	r.Class = ClassOfRecord(r) //mutant:RuleRecordsWait=protocol.Certain
	return true
}

// ClassOfRecord returns the class of a request of an operation on a record.
// Invariant: an erasure is in the class of the leaves, so the leave of a claim
// never overtakes the erasure that its holder wanted sent first.
func ClassOfRecord(r *protocol.Request) protocol.Class {
	if r.Op == protocol.OpPut && r.Stored.Erased {
		return protocol.Renewals
	}
	return protocol.Records
}

// MarkWaiting records that r waits for room at its node. r must not move.
func (o *recordOutbox) MarkWaiting(r *protocol.Request) {
	if o.unsent == nil {
		o.unsent = new([32]*protocol.Request)
	}
	o.unsent[r.Node] = r
}

// Sending reports whether r, whose turn has come, must still be sent. An
// erasure is sent even if its operation is over, since the caller of Retire
// does not wait for it.
func (o *recordOutbox) Sending(r *protocol.Request) (ok bool) {
	return !o.ended || r.Class == protocol.Renewals
}

// Sent records that a link was handed r. The link had room.
func (o *recordOutbox) Sent(r *protocol.Request) {
	if o.unsent != nil && o.unsent[r.Node] == r {
		o.unsent[r.Node] = nil
	}
}

func (o *recordOutbox) End() { o.ended = true }
