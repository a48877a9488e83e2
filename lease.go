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
	// Context ends when the hold ends; context.Cause then is ErrReleased,
	// ErrLost or ErrClosed. At a loss it ends before anybody else can hold the
	// name, provided that this process is running at that moment and its clock
	// keeps to the drift of 1%.
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
