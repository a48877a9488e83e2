package quorate

import (
	"context"
	"time"
)

// A Lease is one hold, from the moment Lock returned until the lock is released
// or lost. When you log it with log/slog, you get its name, token and remaining
// time.
type Lease interface {
	// Token returns the fencing token. It increases with every holder of the name,
	// across all processes. If a resource remembers the highest token it has seen
	// and rejects lower ones, a holder that has lost its lock without noticing
	// cannot write to the resource. Tokens are below 2^63, and about 1.8e18 today.
	// JavaScript and Lua round numbers above 2^53, so pass tokens to them as
	// strings.
	Token() uint64
	// Context returns a context that ends when the hold ends. [context.Cause]
	// then returns [ErrReleased], [ErrLost], [ErrEvicted] or [ErrClosed].
	//
	// Its Err method compares the clock with the deadline, so Err is non-nil from
	// the deadline on, before another process can hold the name. This is true even
	// if no other goroutine has been scheduled since. It requires a clock that
	// drifts by less than 1%.
	//
	// Done is closed by a timer, or by the first call to Err after the deadline,
	// so it may be late in a busy process. A context derived from this one, for
	// example with [context.WithCancel], ends when this one does, but its Err
	// changes only once Done is closed. If it would do harm to find out late,
	// check this context before each step, and pass the token to the resource.
	//
	// The contexts that the Do methods and packages once and leader pass to your
	// functions behave the same way.
	Context() context.Context
	// ValidUntil returns when the hold ends unless it is renewed, on this
	// process's monotonic clock. Each renewal, every third of the TTL, moves it
	// forward. After the hold has ended, ValidUntil returns the last
	// such time.
	ValidUntil() time.Time
	// Wanted returns a channel that is closed once another process, or another
	// goroutine using the same value, is waiting for the hold to end. A holder
	// that can interrupt its work may release the lock at that point. The channel
	// stays closed if the waiter gives up. It is not closed just because the hold
	// ends; for that, use Context.
	//
	// For mutexes, rwmutexes and shards, the nodes push this immediately. For the
	// other primitives it arrives up to TTL/3 later, and only if the hold is
	// renewed. It is only a hint, and is lost if the connection to a node breaks.
	Wanted() <-chan struct{}
}

// A Holder is the process that holds a name, as seen by a majority of the
// nodes. If several processes hold the name, it is the one that has held it
// longest.
type Holder struct {
	// Token of its claim's first hold; handovers inside a process are not
	// visible from outside.
	Token uint64
	Host  string // the process's host
	PID   int    // the process's ID on that host
	Label string // the process's label; see [WithOwner]; empty if not set
	// The claim's note; see [WithNote]; empty if not set; other clients may
	// write any text.
	Note string
	Left time.Duration // time left on its lease unless it is renewed
	// Number of claims that hold the name; more than one only for readers and
	// semaphores.
	Holders int
	Waiters int // number of claims queued behind them
	// Another library (redsync, symfony/lock …) holds the name's key; only Left
	// is known.
	Foreign bool
}
