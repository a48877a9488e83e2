package setup

import (
	"context"
	"time"
)

// Tracer is what the application's tracer is to core.
type Tracer interface {
	AcquireStart(ctx context.Context, i AcquireInfo) context.Context
	AcquireEnd(ctx context.Context, r AcquireResult)
	HoldEnd(ctx context.Context, r HoldResult)
}

// AcquireInfo is an acquisition that begins.
type AcquireInfo struct {
	Kind, Name string
	Try        bool
}

// AcquireResult is how an acquisition has ended.
type AcquireResult struct {
	Kind, Name                    string
	Try, Contended, Local, Shared bool
	Wait                          time.Duration
	Queue, RoundTrips, Votes      int
	Token                         uint64
	Err                           error
}

// HoldResult is how a hold has ended.
type HoldResult struct {
	Kind, Name string
	Token      uint64
	Held       time.Duration
	Err        error
}
