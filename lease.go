package quorate

import (
	"context"
	"time"
)

// Lease is one hold: from the moment a Lock, or its like, returned until the
// release or the loss.
type Lease interface {
	// Token is the fencing token. It rises with every holder of the name, over
	// all processes: a resource that remembers the highest token it has seen
	// and refuses lower ones cannot be written to by a holder that has lost its
	// lock without noticing yet. It is below 2^63.
	Token() uint64
	// Context ends when the hold ends; [context.Cause] then is [ErrReleased],
	// [ErrLost] or [ErrClosed].
	//
	// Its Err compares with the deadline. So from the deadline on, and before
	// another process can hold the name, Err says that the hold has ended, also
	// in a process so busy that no other goroutine has run since; the clock must
	// keep to the drift of 1%. Done is closed by a timer, or by the first call of
	// Err after the deadline: on a busy process it may be late. A context that
	// package context derives from it, as [context.WithCancel] does, ends with
	// it at once, but its own Err knows only what Done knows. Where a
	// late end does harm, ask this context before each step, and give the token
	// to the resource.
	//
	// The contexts that the Do methods, once and leader.Run give to a function
	// are of the same kind.
	Context() context.Context
	// ValidUntil is when the hold ends unless it is renewed before, on this
	// process's monotonic clock. Renewal moves it every third of the TTL.
	ValidUntil() time.Time
}

// Holder is who holds a name, as a majority of the nodes sees it.
type Holder struct {
	Token   uint64        // of its claim's first hold; a hand-over inside its process is not visible from outside
	Host    string        // of the process
	PID     int           // of the process
	Left    time.Duration // until its lease ends unless it is renewed
	Waiters int           // claims queued behind it
	Foreign bool          // another Redlock client (redsync, node-redlock …) holds the plain key; only Left is known
}
