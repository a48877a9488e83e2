package lease

import (
	"github.com/quorate/quorate/internal/protocol"
	"time"
)

// This file owns the order in which a client works on a record: it reads, or it
// opens the record under a hold, and puts again what too few nodes have. Each
// operation is a RegisterOp.

// RunStep is what is to be done next for a Run.
type RunStep uint8

const (
	RunLock   RunStep = iota // claim the name, with a try if Try; tell Locked
	RunRead                  // release the hold, if there is one, and carry out Op; tell Recorded
	RunRecord                // carry out Op under the hold; tell Recorded
	RunOver                  // release the hold that RunLock has got
)

// Run is the work of a client on a record, one step after the other. From
// RunLock until the hold is released no more than Within may pass: the runtime
// then ends what is under way, and says Expired. It is not safe for concurrent
// use.
type Run struct {
	Try    bool
	Within time.Duration
	Op     RegisterOp // of RunRead and RunRecord

	step       RunStep
	Version    protocol.Version
	Succession bool        // it is the record of SuccessorName
	read       *RegisterOp // what is read again when another run's work has been decided; nil: nothing
	ok         bool
	Opened     func(found protocol.Stored) *protocol.Stored // what to put after that; nil: nothing
}

// NewRead returns a Run that reads what a majority has agreed on. Where a run
// that came to nothing has left that open, one of its own decides, unless
// another client holds the name: that one decides the same by its own work.
func NewRead(op RegisterOp, within time.Duration) *Run {
	return &Run{step: RunRead, Op: op, read: &op, Try: true, Within: within}
}

// NewDecision returns a Run that finds out whether a minority's record stands.
// It is a try, so it takes no place in a queue.
func NewDecision(within time.Duration) *Run { return &Run{Try: true, Within: within} }

// NewOpening returns a Run under a hold that there is. From here on no earlier
// hold can record anything.
func NewOpening(v protocol.Version) *Run {
	r := &Run{}
	r.Locked(v, true)
	return r
}

func (r *Run) Step() RunStep { return r.step }

// OK reports whether the run has come to what it is for.
func (r *Run) OK() bool { return r.ok }

// Locked says that the name is held, with the ticket and the id of its claim,
// or that it could not be claimed.
func (r *Run) Locked(v protocol.Version, held bool) {
	if r.step = RunOver; held {
		r.Version = protocol.Version{Ticket: v.Ticket, ID: v.ID, Seq: 1}
		r.record(protocol.OpOpen, protocol.Stored{Version: r.Version})
	}
}

// Expired says that the name was held for long enough.
func (r *Run) Expired() { r.step = RunOver }

// Recorded says what has become of Op, as it was carried out, and whether it
// has been decided as wanted.
// Invariant: what an open has found on a minority is put again under the new
// run's version before any caller gets it (RuleAdopt).
func (r *Run) Recorded(op *RegisterOp, ok bool) {
	found := op.Stored
	switch {
	case op.Op == protocol.OpRead:
		r.ok, r.step = ok, RunOver
		if ok && Decides(op.Outcome() == Inconclusive, r.Version != protocol.Version{}) {
			r.step = RunLock
		}
		return
	case !ok:
		r.step = RunOver
		return
	case op.Op == protocol.OpOpen:
		found = op.Newest()
		if again, few := op.Adopt(); few {
			r.record(protocol.OpPut, again)
			return
		}
	}
	if r.Opened != nil {
		if next := r.Opened(found); next != nil {
			r.record(protocol.OpPut, *next)
			return
		}
	}
	if r.step = RunOver; r.read != nil {
		r.step, r.Op = RunRead, *r.read
		return
	}
	r.ok = true
}

func (r *Run) record(op protocol.Op, s protocol.Stored) {
	r.step, r.Op = RunRecord, RegisterOp{Op: op, Stored: s, Succession: r.Succession}
}
