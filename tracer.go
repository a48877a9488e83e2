package quorate

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// WithTracer sets the [Tracer] of acquisitions and holds. Default nil: none.
func WithTracer(t Tracer) Option {
	return setting{func(s *setup.Settings) {
		if s.Trace = nil; t != nil {
			s.Trace = tracer{t}
		}
	}}
}

// A Tracer follows the calls that acquire, of all primitives of a [Quorum], and
// what they hold: see [WithTracer]. Module otel has one for OpenTelemetry. An
// [Observer] gets what no caller waits for.
//
// Each AcquireStart is followed by one AcquireEnd, and that by one HoldEnd if
// the result has no Err and is not Shared. Both get the context that
// AcquireStart returned, and the call goes on with that context: return the one
// you got, or one derived from it that adds only values.
//
// A [mutex.Group] acquires each of its names, and tries some more than once. A
// call with a context that has ended, or an invalid name, acquires nothing.
//
// A Tracer must be safe for concurrent use. The library calls it without
// holding a lock, in the goroutine of the caller; HoldEnd also in a goroutine
// of its own. The methods must return soon and must not call the library. If
// one panics, the panic reaches the caller: Lock then has not locked, and
// Unlock has unlocked. A panic in HoldEnd of a lost hold ends the process.
//
// [mutex.Group]: https://pkg.go.dev/github.com/quorate/quorate/mutex#Group
type Tracer interface {
	AcquireStart(ctx context.Context, a AcquireInfo) context.Context
	AcquireEnd(ctx context.Context, r AcquireResult)
	HoldEnd(ctx context.Context, r HoldResult)
}

// An AcquireInfo describes an acquisition that begins, see [Tracer].
type AcquireInfo struct {
	Kind, Name string // Kind is the package: mutex, rwmutex, semaphore, once, leader, flight, period or shards
	Try        bool   // it does not wait for a turn
}

// An AcquireResult describes how an acquisition ended, see [Tracer].
type AcquireResult struct {
	Kind, Name string        // see AcquireInfo
	Try        bool          // see AcquireInfo
	Contended  bool          // other claims were ahead at some node
	Local      bool          // handed over inside the process; no node was asked
	Shared     bool          // joined the read hold that this process already has; no HoldEnd follows
	Wait       time.Duration // since AcquireStart
	Queue      int           // the most claims that were before it at a node, those that held the name, too; 0 with Err
	RoundTrips int           // the most requests that one node was sent, until the claim was admitted; 0 with Err
	Votes      int           // of the nodes
	Token      uint64        // the fencing token; 0 with Err
	Err        error         // nil: it is held; mostly an *Error
}

// A HoldResult describes how a hold ended, see [Tracer].
type HoldResult struct {
	Kind, Name string // see AcquireInfo
	Token      uint64
	Held       time.Duration
	Err        error // nil: it was released; else it matches ErrLost or ErrClosed
}

// tracer is a Tracer as package core calls it.
type tracer struct{ Tracer }

func (t tracer) AcquireStart(ctx context.Context, i setup.AcquireInfo) context.Context {
	return t.Tracer.AcquireStart(ctx, AcquireInfo(i))
}

func (t tracer) AcquireEnd(ctx context.Context, r setup.AcquireResult) {
	t.Tracer.AcquireEnd(ctx, AcquireResult(r))
}

func (t tracer) HoldEnd(ctx context.Context, r setup.HoldResult) {
	t.Tracer.HoldEnd(ctx, HoldResult(r))
}
