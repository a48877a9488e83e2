// Package core runs the protocol: it gives the state machine of
// internal/protocol a clock, connections and timers, and gives the primitives
// claims to build on.
//
// Locks are taken in one order: attempt, then scheduler or link. Callbacks of
// the primitives run with none of them held.
package core
