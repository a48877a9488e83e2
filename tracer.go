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
// what they hold, for traces and metrics: see [WithTracer]. Module otel has one
// for OpenTelemetry. An [Observer] gets what no caller waits for.
//
// Each AcquireStart is followed by one AcquireEnd, and that by one HoldEnd if
// it has no Err and is not Shared. The two get the context that AcquireStart
// returned, with which the call goes on: it must be the call's own, perhaps
// with more values.
//
// [mutex.All] acquires each of its names, and tries some more than once. A call
// with a context that has ended, or an unusable name, acquires nothing.
//
// A Tracer must be safe for concurrent use. Its methods are called without a
// lock, in the goroutine of the caller; HoldEnd also in one of its own. They
// must return soon and must not call the library. If one panics, the panic is
// the caller's: Lock then has not locked, and Unlock has unlocked. HoldEnd of a
// hold that was lost ends the process then.
//
// [mutex.All]: https://pkg.go.dev/github.com/quorate/quorate/mutex#All
type Tracer interface {
	AcquireStart(ctx context.Context, a AcquireInfo) context.Context
	AcquireEnd(ctx context.Context, r AcquireResult)
	HoldEnd(ctx context.Context, r HoldResult)
}

// An AcquireInfo is an acquisition that begins, see [Tracer]. It is a plain
// value, safe for concurrent use as long as no goroutine changes it.
type AcquireInfo struct {
	Kind, Name string // Kind is the package: mutex, rwmutex, semaphore, once, leader, flight, period or shards
	Try        bool   // it does not wait for a turn
}

// An AcquireResult is how an acquisition has ended, see [Tracer]. It is a plain
// value, safe for concurrent use as long as no goroutine changes it.
type AcquireResult struct {
	Kind, Name string        // see AcquireInfo
	Try        bool          // see AcquireInfo
	Contended  bool          // a node has refused its vote, as other claims were ahead
	Local      bool          // under a claim that this process had: no node was asked
	Shared     bool          // beside readers of this process, whose hold it joins: it has no HoldEnd
	Wait       time.Duration // since AcquireStart
	Queue      int           // the most claims that were before it at a node, those that held the name, too; 0 with Err
	RoundTrips int           // the most requests that one node was sent, until the claim was admitted; 0 with Err
	Votes      int           // of the nodes
	Token      uint64        // the fencing token; 0 with Err
	Err        error         // nil: it is held; mostly an *Error
}

// A HoldResult is how a hold has ended, see [Tracer]. It is a plain value, safe
// for concurrent use as long as no goroutine changes it.
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
