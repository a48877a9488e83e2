// Package core runs the protocol: it gives the state machine of
// internal/protocol a clock, connections and timers, and gives the primitives
// claims to build on.
//
// It passes bytes, times and events to internal/protocol, and does what that
// says. The runtime itself must do some things in a certain order: the rules in
// rules.go name these.
//
// Locks are taken in one order: attempt, then scheduler or link. Callbacks of
// the primitives run with none of them held. A callback may call the same value
// again, so a lock held there would deadlock.
package core
