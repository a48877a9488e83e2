package quorate

import (
	"context"
	"time"
)

// A Lease is one hold: from the moment that a Lock, or its like, returned until
// the release or the loss. A logger of log/slog prints its name, its token and
// how much of it is left. It is safe for concurrent use.
type Lease interface {
	// Token returns the fencing token. It rises with every holder of the name,
	// over all processes. So a resource that remembers the highest token it has
	// seen, and refuses lower ones, cannot be written to by a holder that lost
	// its lock and has not noticed yet. The token is below 2^63, and about
	// 1.8e18 today. That is above 2^53, the largest integer that numbers of
	// JavaScript and Lua hold exactly.
	Token() uint64
	// Context returns a context that ends when the hold ends. [context.Cause]
	// then is [ErrReleased], [ErrLost], [ErrEvicted] or [ErrClosed].
	//
	// Its Err compares with the deadline. So Err says that the hold has ended
	// from the deadline on, and before another process can hold the name. It
	// does so in a process so busy that no other goroutine has run since, too.
	// The clock must keep to the drift of 1%.
	//
	// Done is closed by a timer, or by the first call of Err after the
	// deadline: on a busy process it may be late. A context that package
	// context derives from this one, as [context.WithCancel] does, ends with it
	// at once, but its own Err knows only what Done knows. Where a late end
	// does harm, ask this context before each step, and give the token to the
	// resource.
	//
	// The contexts that the Do methods and packages once and leader give to a
	// function are of the same kind.
	Context() context.Context
	// ValidUntil returns when the hold ends unless it is renewed before, on
	// this process's monotonic clock. Renewal moves it every third of the TTL.
	ValidUntil() time.Time
	// Wanted returns a channel that is closed when another claim, or another
	// goroutine with the same Mutex, RWMutex or Group, has begun to wait behind
	// the hold: a holder with work that can stop may give way. It stays closed
	// if that one gives up. It is not closed by the end of the hold: see
	// Context.
	//
	// The nodes of a mutex, an rwmutex and shards tell that at once, and those
	// of the other primitives with a renewal, a third of the TTL later at most.
	// It is a hint: what a node says is lost if its connection breaks.
	Wanted() <-chan struct{}
}

// A Holder is the process that holds a name, as a majority of the nodes sees
// it: every primitive has a method Holder. If several hold it, it is the one
// that has for the longest. It is a plain value, safe for concurrent use as
// long as no goroutine changes it.
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
