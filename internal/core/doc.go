// Package core runs the claims of a process: it gives the state machine of
// internal/process a clock and timers, carries out what that returns, and gives
// the primitives claims to build on. Package peers has the nodes, their
// connections and their set. docs/internals/rules.md lists what the two must do
// in a fixed order.
//
// # Locks
//
// Locks are taken in this order:
//
//	buckets.mu
//	attempt.mu or registerCall.mu
//	those of process.Client
//	nodes.mu
//	flow.mu or the one of a link, never both
//
// registry.mu, pauses.mu, members.mu, Lease.mu, repairer.mu, tasks.mu,
// reach.mu, recovering.mu, observer.mu and those of packages wake and setup are
// leaves: no lock is taken under them. No lock is held while waiting for a
// node: a wait for a lock does not end with a context, and fake time stands
// still during it. None is held in a callback of a primitive, the observer, the
// tracer or the logger: a callback may call the same value again, so a lock
// held there would deadlock.
//
// # Goroutines
//
// Their number does not grow with the number of claims:
//
//	two of the schedulers     wake attempts; never block, or a renewal would be late
//	two or three of a link    write, read, connect (package transport); the reader calls
//	                          Reply and Push, which must not wait for the same node
//	one of a flow, at times   sends what waited for room, and ends when nothing waits
//	one of a watch            asks for its record
//	one for each repair step  as it waits for a node
//	one for each node         that begins or is dropped, until nothing of it is left
//	one of a recording        while the nodes are to record their set
//	one for each deadline     that has passed: it ends the hold, which calls the primitive
//	one for each lost hold    that is traced: it calls the tracer
//	one of the observer       while it is called
//
// A caller's own goroutine waits for its claim, under its own context.
package core
