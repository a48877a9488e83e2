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
	EvCall  = "call"  // Lock is about to be called
	EvFail  = "fail"  // the call was refused, or gave up
	EvBegin = "begin" // Lock has returned with the lock
	EvUntil = "until" // the validity has changed
	EvEnd   = "end"   // Unlock is about to be called, or the lease's context has ended
	EvLeft  = "left"  // Unlock has returned
	EvDone  = "done"  // the function of once has returned
	EvTold  = "told"  // the answer to the question who leads, or whether a round is done
	EvLate  = "late"  // Close reported that it stopped waiting for some node's confirmation
	EvError = "error" // a problem of the client itself: the run is void, or something was left behind
)

// Kinds of operations besides those of the primitives.
const (
	// redsync clients that lock the names of mutexes and elections by their
	// redlock keys; selected with -rivals, not with -work.
	Rival = "rival"
	Runs  = "run" // runs of the function of once
)

// Event is one line of a client's log.
type Event struct {
	T      int64  `json:"t"` // of Now
	E      string `json:"e"`
	Op     string `json:"op,omitempty"` // the operation that the event belongs to: CLIENT.LIFE.NUMBER
	Kind   string `json:"k,omitempty"`  // call: which primitive
	Name   string `json:"n,omitempty"`
	Weight int64  `json:"w,omitempty"`
	Calm   bool   `json:"calm,omitempty"`  // call: in the liveness phase
	After  string `json:"after,omitempty"` // call: the operation whose hold this one takes over
	Token  uint64 `json:"tok,omitempty"`
	Until  int64  `json:"until,omitempty"` // begin, until, end: the current ValidUntil
	Seen   int64  `json:"seen,omitempty"`  // end: when ValidUntil was last seen to be in the future
	Lost   bool   `json:"lost,omitempty"`  // end: the hold was lost
	Round  string `json:"r,omitempty"`     // call of once: the round
	// Begin of once: the value that its run has returned. Told: the answer in
	// words.
	Value string `json:"v,omitempty"`
	From  int64  `json:"from,omitempty"` // told: when it asked
	Err   string `json:"err,omitempty"`
}

// Oplog is the log of one life of a client. Each event is one write to the
// file, so that kill -9 loses no past event.
type Oplog struct {
	prefix string
	ops    atomic.Int64
	Done   atomic.Int64 // holds begun, for the progress on the terminal
	Failed atomic.Int64

	mu   sync.Mutex
	file *os.File
}

// CreateLog begins the log of a life. The names of its operations begin with
// prefix.
func CreateLog(path, prefix string) (*Oplog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Oplog{prefix: prefix, file: f}, nil
}

// Write logs e. The caller sets the time, because only the caller knows before
// or after which step the clock must be read.
func (l *Oplog) Write(e Event) {
	switch e.E {
	case EvBegin:
		l.Done.Add(1)
	case EvFail:
		l.Failed.Add(1)
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // cannot happen: a struct of numbers and strings
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

// CallAt is Call for an operation that was called at an earlier time.
func (l *Oplog) CallAt(at int64, e Event) string {
	e.E, e.Op = EvCall, fmt.Sprintf("%s.%d", l.prefix, l.ops.Add(1))
	e.T = at
	l.Write(e)
	return e.Op
}

// Fail logs that an operation was refused or given up.
func (l *Oplog) Fail(op string, err error) {
	l.Write(Event{T: Now(), E: EvFail, Op: op, Err: err.Error()})
}

// Trouble logs a problem of the client itself.
func (l *Oplog) Trouble(err error) { l.Write(Event{T: Now(), E: EvError, Err: err.Error()}) }

// Close ends the log.
func (l *Oplog) Close() error { return l.file.Close() }

// ExitVoid is the exit status of an inconclusive run.
const ExitVoid = 2
