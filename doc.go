// Package quorate is the sync package, across processes: Mutex, RWMutex, a
// weighted Semaphore, Once and leader election, kept by a majority of N
// independent Redis masters.
//
// A [Quorum] is this process's connection to the nodes. The primitives are in
// packages of their own: [mutex], [rwmutex], [semaphore], [once] and [leader].
//
//	q, err := quorate.Connect(ctx, []string{"redis://a:6379", "redis://b:6379", "redis://c:6379"})
//	...
//	m := mutex.New(q, "invoices")
//	m.Lock()
//	defer m.Unlock()
//
// # What is guaranteed
//
// The algorithm is Redlock, completed with an order among claims, a fencing
// token, and wake-ups instead of polling. Redlock is the same key and a random
// id on N masters, a majority, a validity time measured from before the send,
// extension, release on all nodes, and delayed restarts.
//
// The guarantee rests on three conditions: fewer than half of the nodes fail at
// a time, clocks run at the same speed within 1%, and a node that lost its data
// does not vote for the guard time. While they hold, no two processes hold a
// name at the same time by their own clocks, and each holder's token is higher
// than that of every earlier holder.
//
// # What is not
//
// No lock service can stop a process that has been paused. When the process
// goes on, its lease's context has ended, but code that does not look at the
// context does not know that. So where a late write does harm, give
// [Lease.Token] to the resource, and let the resource refuse a token that is
// lower than one it has seen.
//
// # Errors
//
// An operation that fails returns an [*Error] of one of the kinds [ErrHeld],
// [ErrNoQuorum], [ErrLost], [ErrNotHeld], [ErrClosed] and
// [ErrInvalid]. [New] and [Connect] refuse wrong nodes and options with
// ErrInvalid. A wrong option of a primitive is a programmer's error and panics.
//
// [mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex
// [rwmutex]: https://pkg.go.dev/github.com/quorate/quorate/rwmutex
// [semaphore]: https://pkg.go.dev/github.com/quorate/quorate/semaphore
// [once]: https://pkg.go.dev/github.com/quorate/quorate/once
// [leader]: https://pkg.go.dev/github.com/quorate/quorate/leader
package quorate
