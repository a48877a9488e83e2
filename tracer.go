package quorate

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// WithTracer sets the [Tracer]. By default there is none.
func WithTracer(t Tracer) Option {
	return setting{func(s *setup.Settings) {
		if s.Trace = nil; t != nil {
			s.Trace = tracer{t}
		}
	}}
}

// A Tracer follows every call that acquires something, for all primitives of a
// [Quorum], and the holds that result; see [WithTracer]. Module otel has a
// Tracer for OpenTelemetry. For events that no caller is waiting for, use an
// [Observer].
//
// Each AcquireStart is followed by an AcquireEnd. If the result has no Err and
// is not Shared, a HoldEnd follows. Both get the context that AcquireStart
// returned, and the call itself continues with that context. So return the
// context you were given, or one derived from it that only adds values.
//
// A [mutex.Group] acquires each of its names, some of them more than once. A
// call with an invalid name, or with a context that has already ended, acquires
// nothing.
//
// A Tracer must be safe for concurrent use. The library calls it in the
// caller's goroutine, without holding any internal lock; HoldEnd may also be
// called in a separate goroutine. The methods must return quickly and must not
// call the library. If a method panics, the panic reaches the caller: Lock has
// then not locked, but Unlock has unlocked. If HoldEnd panics for a lost hold,
// the process crashes.
//
// [mutex.Group]: https://pkg.go.dev/github.com/quorate/quorate/mutex#Group
type Tracer interface {
	AcquireStart(ctx context.Context, a AcquireInfo) context.Context
	AcquireEnd(ctx context.Context, r AcquireResult)
	HoldEnd(ctx context.Context, r HoldResult)
}

// An AcquireInfo describes an acquisition that is starting; see [Tracer].
type AcquireInfo struct {
	// Kind is the package: mutex, rwmutex, semaphore, once, leader, flight,
	// period or shards.
	Kind, Name string
	Try        bool // whether the call does not wait for its turn
}

// An AcquireResult describes how an acquisition ended; see [Tracer].
type AcquireResult struct {
	Kind, Name string // see AcquireInfo
	Try        bool   // see AcquireInfo
	Contended  bool   // whether other claims were ahead on any node
	Local      bool   // whether it was handed over inside the process, without asking any node
	// Whether it joined a read hold that this process already has; no HoldEnd
	// follows.
	Shared bool
	Wait   time.Duration // time since AcquireStart
	// The maximum number of claims ahead of it on any node, including those
	// that hold the name; 0 if Err is set.
	Queue int
	// The maximum number of requests sent to any one node until the claim was
	// admitted; 0 if Err is set.
	RoundTrips int
	Votes      int    // number of nodes that voted for it
	Token      uint64 // the fencing token; 0 if Err is set
	Err        error  // nil if it was acquired; usually an *Error
}

// A HoldResult describes how a hold ended; see [Tracer].
type HoldResult struct {
	Kind, Name string // see AcquireInfo
	Token      uint64
	Held       time.Duration
	Err        error // nil if it was released; otherwise it matches ErrLost or ErrClosed
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
