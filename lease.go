package quorate

import (
	"context"
	"time"
)

// A Lease is one hold, from the moment Lock returned until the release or the
// loss. A log/slog logger prints its name, its token and how much of it is
// left.
type Lease interface {
	// Token returns the fencing token. It rises with every holder of the name, over
	// all processes. A resource that remembers the highest token it has seen, and
	// refuses lower ones, cannot be written to by a holder that has lost its lock
	// and does not know it yet. Tokens are below 2^63 and about 1.8e18 today.
	// JavaScript and Lua round numbers above 2^53, so pass tokens to them as
	// strings.
	Token() uint64
	// Context returns a context that ends when the hold ends. [context.Cause] then
	// is [ErrReleased], [ErrLost], [ErrEvicted] or [ErrClosed].
	//
	// Its Err compares the clock with the deadline. So Err reports the end from the
	// deadline on, before another process can hold the name. This holds even if no
	// other goroutine has been scheduled since. It rests on a clock that drifts by
	// less than 1%.
	//
	// Done is closed by a timer, or by the first call of Err after the deadline, so
	// it may be late on a busy process. A context derived from this one, for
	// example by [context.WithCancel], ends with it, but its own Err knows only
	// what Done knows. If a late end does harm, ask this context before each step,
	// and give the token to the resource.
	//
	// The contexts that the Do methods, once and leader pass to functions are of
	// the same kind.
	Context() context.Context
	// ValidUntil returns when the hold ends unless it is renewed, on this process's
	// monotonic clock. Renewal moves it every third of the TTL.
	ValidUntil() time.Time
	// Wanted returns a channel that is closed when another claim, or another
	// goroutine with the same value, has begun to wait behind the hold. A holder
	// whose work can stop may then give way. The channel stays closed if the waiter
	// gives up. The end of the hold does not close it: see Context.
	//
	// For a mutex, an rwmutex and shards the nodes tell at once; for the other
	// primitives with a renewal, at most a third of the TTL later. It is a hint: it
	// is lost if a node's connection breaks.
	Wanted() <-chan struct{}
}

// A Holder is the process that holds a name, as a majority of the nodes sees
// it. If several processes hold the name, it is the one that has held it for
// the longest.
type Holder struct {
	Token   uint64        // of its claim's first hold; a hand-over inside its process is not visible from outside
	Host    string        // of the process
	PID     int           // of the process
	Label   string        // of the process, see [WithOwner]; empty: none
	Left    time.Duration // until its lease ends unless it is renewed
	Holders int           // claims that hold the name: more than one only of readers and of a semaphore
	Waiters int           // claims queued behind them
	Foreign bool          // another Redlock client (redsync, node-redlock …) holds the redlock key; only Left is known
}
