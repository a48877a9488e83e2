package lease

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// The order in which a client works on a record: it reads the record, or it
// opens it under a hold and puts again what too few nodes have. Each operation
// is a RegisterOp.

// RunIO is how a Run asks. Each method waits for its answer.
type RunIO interface {
	// Lock claims the name, with a single try if try is set. From then until
	// Release no more than within may pass: after that, operations in progress
	// fail, and so does Do.
	Lock(try bool, within time.Duration) (v protocol.Version, held bool)
	// Release releases the hold, if there is one.
	Release()
	// Do carries out an operation, under the hold if there is one. It reports
	// whether the operation has been decided as wanted.
	Do(op RegisterOp) (found RunResult, ok bool)
}

// RunResult is what an operation on a record has found.
type RunResult struct {
	Newest    protocol.Stored
	Again     *protocol.Stored // what is to be put again: see RegisterOp.Adopt
	Undecided bool             // a run has to decide what is recorded
}

// Result returns what the operation has found.
func (q *RegisterOp) Result() RunResult {
	f := RunResult{Newest: q.Newest(), Undecided: q.Outcome() == Inconclusive}
	if again, few := q.Adopt(); few {
		f.Again = &again
	}
	return f
}

// Run is the work of a client on a record.
type Run struct {
	Try        bool             // lock the name with a single try, without queueing
	Within     time.Duration    // see RunIO.Lock
	Succession bool             // it is the record of SuccessorName
	Version    protocol.Version // of the open, with Seq 1; Open sets it
	// Opened is called with what is recorded: after the open, and again after each
	// put. It returns the value to put next, with Version and a higher Seq for
	// each put, or nil if there is none; in the end it must return nil. It may
	// itself be nil.
	Opened func(found protocol.Stored) *protocol.Stored
}

// Read reads the record that a majority agrees on. If an unfinished run has
// left it undecided, this client decides it with a run of its own, unless
// another client holds the name: that client's own work will decide it.
func (r *Run) Read(io RunIO, op RegisterOp) bool {
	found, ok := io.Do(op)
	if ok && Decides(found.Undecided, false) && r.Decide(io) {
		_, ok = io.Do(op)
	}
	return ok
}

// Decide opens the record under a hold of its own. It finds out whether a
// minority's record stands.
func (r *Run) Decide(io RunIO) bool {
	v, held := io.Lock(r.Try, r.Within)
	defer io.Release()
	return held && r.Open(io, v)
}

// Open opens the record under an existing hold, with its ticket and id. From
// then on no earlier hold can record anything.
// Invariant: what an open has found on a minority is put again under the new
// run's version before any caller gets it (RuleAdopt).
//
// Open reports whether all of that was decided. If not, the run may have been
// superseded, or too few nodes answered.
func (r *Run) Open(io RunIO, v protocol.Version) bool {
	// Adopt puts under number 0, so a value of the run's own gets a higher one.
	// Nodes take it although the open had 1: they compare a put with a promise by
	// ticket and id alone.
	r.Version = protocol.Version{Ticket: v.Ticket, ID: v.ID, Seq: 1}
	found, ok := io.Do(RegisterOp{
		Op: protocol.OpOpen, Stored: protocol.Stored{Version: r.Version}, Succession: r.Succession,
	})
	is := found.Newest
	for next := found.Again; ok; {
		if next == nil && r.Opened != nil {
			next = r.Opened(is)
		}
		if next == nil {
			return true
		}
		_, ok = io.Do(RegisterOp{Op: protocol.OpPut, Stored: *next, Succession: r.Succession})
		is, next = *next, nil
	}
	return false
}
