package record

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// The events of a client's log.
const (
	EvCall  = "call"  // it asks: Lock is about to be called
	EvFail  = "fail"  // it was refused, or gave up
	EvBegin = "begin" // it has it: Lock has returned
	EvUntil = "until" // the validity has moved
	EvEnd   = "end"   // it has it no more: Unlock is about to be called, or the lease's context has ended
	EvLeft  = "left"  // Unlock has returned
	EvDone  = "done"  // what once is to run has been carried out
	EvTold  = "told"  // the client's answer when it asked for the leader, or whether something is done
	EvLate  = "late"  // Close did not wait any longer for some node's word, and has said so
	EvError = "error" // the client's own trouble: the run is void, or something is left behind
)

// Kinds of operations that the judge tells from those of a primitive.
const (
	// Of redsync clients that lock the names of mutexes and elections by their
	// redlock keys; asked for by -rivals, not by -work.
	Rival = "rival"
	Runs  = "run" // of the function that once is to run
)

// Event is one line of a client's log.
type Event struct {
	T      int64  `json:"t"` // of Now
	E      string `json:"e"`
	Op     string `json:"op,omitempty"` // of all events of one operation: CLIENT.LIFE.NUMBER
	Kind   string `json:"k,omitempty"`  // call: which primitive
	Name   string `json:"n,omitempty"`
	Weight int64  `json:"w,omitempty"`
	Calm   bool   `json:"calm,omitempty"`  // call: in the liveness phase
	After  string `json:"after,omitempty"` // call: the operation whose hold this one goes on with
	Token  uint64 `json:"tok,omitempty"`
	Until  int64  `json:"until,omitempty"` // begin, until, end: ValidUntil as it stands
	Seen   int64  `json:"seen,omitempty"`  // end: when ValidUntil was last seen to be in the future
	Lost   bool   `json:"lost,omitempty"`  // end: by itself
	Round  string `json:"r,omitempty"`     // call of once: which piece of work
	// Begin of once: what its run has returned; told: the answer in words.
	Value string `json:"v,omitempty"`
	From  int64  `json:"from,omitempty"` // told: when it asked
	Err   string `json:"err,omitempty"`
}

// Oplog is the log of one life of a client. Each event is one write to the
// file, so that kill -9 loses none that has happened.
type Oplog struct {
	prefix string
	ops    atomic.Int64
	Done   atomic.Int64 // holds begun, for the progress on the terminal
	Failed atomic.Int64

	mu   sync.Mutex
	file *os.File
}

// CreateLog begins the log of a life, whose operations get names with the
// prefix.
func CreateLog(path, prefix string) (*Oplog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Oplog{prefix: prefix, file: f}, nil
}

// Write writes e down. Its time is the caller's: only the caller knows on which
// side of what the clock must be read.
func (l *Oplog) Write(e Event) {
	switch e.E {
	case EvBegin:
		l.Done.Add(1)
	case EvFail:
		l.Failed.Add(1)
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // a struct of numbers and strings
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: a client's log:", err)
		os.Exit(ExitVoid)
	}
}

// Call begins the operation that e describes, and returns its name.
func (l *Oplog) Call(e Event) string { return l.CallAt(Now(), e) }

// CallAt begins an operation that was called before.
func (l *Oplog) CallAt(at int64, e Event) string {
	e.E, e.Op = EvCall, fmt.Sprintf("%s.%d", l.prefix, l.ops.Add(1))
	e.T = at
	l.Write(e)
	return e.Op
}

// Fail says that an operation was refused, or given up.
func (l *Oplog) Fail(op string, err error) {
	l.Write(Event{T: Now(), E: EvFail, Op: op, Err: err.Error()})
}

// Trouble says what went wrong in the client itself.
func (l *Oplog) Trouble(err error) { l.Write(Event{T: Now(), E: EvError, Err: err.Error()}) }

// Close ends the log.
func (l *Oplog) Close() error { return l.file.Close() }

// ExitVoid is the exit status of what says nothing.
const ExitVoid = 2
