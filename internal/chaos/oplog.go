package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// The events of a client's log.
const (
	evCall  = "call"  // it asks: Lock is about to be called
	evFail  = "fail"  // it was refused, or gave up
	evBegin = "begin" // it has it: Lock has returned
	evUntil = "until" // the validity has moved
	evEnd   = "end"   // it has it no more: Unlock is about to be called, or the lease's context has ended
	evLeft  = "left"  // Unlock has returned
	evDone  = "done"  // what once is to run has been carried out
	evTold  = "told"  // the client's answer when it asked for the leader, or whether something is done
	evLate  = "late"  // Close did not wait any longer for some node's word, and has said so
	evError = "error" // the client's own trouble: the run is void, or something is left behind
)

// Kinds of operations that the judge tells from those of a primitive.
const (
	rival = "rival" // of redsync clients that lock the names of mutexes and elections by their redlock keys; asked for by -rivals, not by -work
	runs  = "run"   // of the function that once is to run
)

// event is one line of a client's log.
type event struct {
	T      int64  `json:"t"` // of now
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
	Value  string `json:"v,omitempty"`     // begin of once: what its run has returned; told: the answer in words
	From   int64  `json:"from,omitempty"`  // told: when it asked
	Err    string `json:"err,omitempty"`
}

// oplog is the log of one life of a client. Each event is one write to the
// file, so that kill -9 loses none that has happened.
type oplog struct {
	prefix string
	ops    atomic.Int64
	done   atomic.Int64 // holds begun, for the progress on the terminal
	failed atomic.Int64

	mu   sync.Mutex
	file *os.File
}

func createLog(path, prefix string) (*oplog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &oplog{prefix: prefix, file: f}, nil
}

// write writes e down. Its time is the caller's: only the caller knows on which
// side of what the clock must be read.
func (l *oplog) write(e event) {
	switch e.E {
	case evBegin:
		l.done.Add(1)
	case evFail:
		l.failed.Add(1)
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // a struct of numbers and strings
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: a client's log:", err)
		os.Exit(exitVoid)
	}
}

// call begins the operation that e describes, and returns its name.
func (l *oplog) call(e event) string { return l.callAt(now(), e) }

func (l *oplog) callAt(at int64, e event) string {
	e.E, e.Op = evCall, fmt.Sprintf("%s.%d", l.prefix, l.ops.Add(1))
	e.T = at
	l.write(e)
	return e.Op
}

func (l *oplog) fail(op string, err error) {
	l.write(event{T: now(), E: evFail, Op: op, Err: err.Error()})
}

// trouble says what went wrong in the client itself.
func (l *oplog) trouble(err error) { l.write(event{T: now(), E: evError, Err: err.Error()}) }

func (l *oplog) close() error { return l.file.Close() }
