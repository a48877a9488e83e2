package lease

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns one operation on a record, and what becomes of the requests
// that it wants sent. That is to a [RegisterOp] what outbox.go of process is to
// an Attempt, with the same Backlog and the same ways: Goes, then Departed or
// Waits, and Depart when the turn of what waits has come.

// Outcome is what has become of a RegisterOp.
// Invariant: an outcome is final. What is heard later changes nothing, so a
// caller that has its answer may be gone.
type Outcome uint8

const (
	Asking       Outcome = iota // not decided yet
	Settled                     // a majority has it so
	Inconclusive                // a read that found what a later run will not let a majority have
	Superseded                  // an open or a put that a later run has superseded
	Refused                     // so many nodes refuse for good that q cannot be reached
)

// RegisterOp is one operation on a record: it asks all nodes, and those that do
// not answer again, until a majority decides. As with Claim, its methods take
// the time and an event, Out is what is to be sent then, and Wake is when it
// wants a Tick.
type RegisterOp struct {
	Op          protocol.Op   // OpRead, OpOpen or OpPut
	First       bool          // OpPut: of a run that has not been opened
	Over        bool          // OpPut: its claim has been lost, so no node will vote for it any more
	Fresh       time.Duration // how long an answer counts: no node that forgets after it is caught up again so soon
	Stored      protocol.Stored
	Nodes       int
	Succession  bool             // of the register of SuccessorName
	Sets        protocol.Quorums // the zero value: a majority of Nodes
	Absent      uint32           // nodes that are asked nothing, a bit for each
	NodeTimeout time.Duration
	MaxPause    time.Duration // the longest pause before a node is asked again
	Alive       bool          // OpRead: Left is wanted, so a node that is only slow is waited for if it matters
	All         bool          // OpRead: every node that answers shall have it in the end
	Repair      int           // OpRead: the number of a node that must have it in the end, counted from 1; 0: none
	Out         []protocol.Request
	recordOutbox

	outcome Outcome
	// The newest value that any node has shown. It is not yet what is recorded:
	// a minority may have it, from a run that has failed. attest.go decides
	// whether it is adopted, refused or left open.
	newest       protocol.Stored
	promise      protocol.Version // the newest that any node has shown
	gone         protocol.Time    // since when the claim of an open or a put is known to have ended; 0: it is not
	blocked      protocol.Time    // since when it cannot be taken unless nodes come to vote for its claim; 0: it can
	evidenceFrom protocol.Time    // what others are asked from here on counts; 0: not yet. See write and read
	peers        []registerPeer
}

// registerPeer is what is known of one node.
type registerPeer struct {
	// An entry counts only together with answerSent: a node forgets when it
	// loses its data, and is then repaired with what the others know by then.
	entry        protocol.Entry
	answered     bool          // entry is its answer
	taken        bool          // it has taken the open or put, or has what is being repaired
	superseded   bool          // it has refused that for a later run
	missing      bool          // it does not vote for the claim
	answerSent   protocol.Time // s of its newest answer
	repair       bool          // it is to be given the newest
	repairTried  bool          // which it was since it was read last
	refused      bool          // it refuses for good
	from         protocol.Time // answers to requests that were sent up to here do not count: another member had the number
	pendingSince protocol.Time // s of the request that is out; 0: none
	askAt        protocol.Time // when to ask again; 0: not
	failures     int
}

func (q *RegisterOp) Outcome() Outcome { return q.outcome }

type recordOutbox struct {
	unsent *[32]*protocol.Request // by node: the request that waits for room there; nil while none has
	ended  bool                   // it is decided, or given up
}

// Goes decides about r, which the operation wants sent, and reports whether it
// goes to its node: at once, or when there is room. r gets its class.
// Invariant: at most one request of an operation waits for a node. A newer one
// takes its place, so what waits is not more than the operations that callers
// wait for.
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
// Invariant: an erasure is in the class of the leaves, so a claim's leave never
// comes before the erasure that its holder wanted sent first.
func ClassOfRecord(r *protocol.Request) protocol.Class {
	if r.Op == protocol.OpPut && r.Stored.Erased {
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
