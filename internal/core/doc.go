// Package core runs the claims of a process: it gives the state machine of
// internal/process a clock and timers, carries out the actions that the state
// machine returns, and gives the primitives claims to build on. Package peers
// has the nodes, their connections and their set. docs/internals/rules.md lists
// what the two packages must do in a fixed order.
//
// # Locks
//
// Locks are taken in this order:
//
//	buckets.mu
//	attempt.mu or registerCall.mu
//	the locks of process.Client
//	nodes.mu
//	flow.mu or the lock of a link, never both
//
// registry.mu, pauses.mu, members.mu, Lease.mu, repairer.mu, tasks.mu,
// reach.mu, recovering.mu, observer.mu and those of packages wake and setup are
// leaves: no lock is taken under them. No lock is held while waiting for a
// node, because a wait for a lock does not end with a context, and fake time
// stands still during it. No lock is held while a primitive, the observer, the
// tracer or the logger is called: a callback may call the same value again, and
// would deadlock.
//
// # Goroutines
//
// Their number does not grow with the number of claims:
//
//	two for the schedulers    wake attempts; never block, or a renewal would be late
//	two or three per link     write, read, connect (package transport); the reader calls
//	                          Reply and Push, which must not wait for the same node
//	one per busy flow         sends what waited for room, and ends when nothing waits
//	one per watch             reads the record
//	one per repair step       waits for a node
//	one per node              that begins or is dropped, until it is gone
//	one for a recording       has the nodes record their set
//	one per passed deadline   ends the hold, which calls the primitive
//	one per lost hold         if it is traced: calls the tracer
//	one for the observer      while it is called
//
// A caller's own goroutine waits for its claim, under its own context.
package core
