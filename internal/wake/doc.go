// Package wake has the clock by which a process judges its leases, and the
// schedulers and the timer that wake its claims. It knows nothing of nodes.
//
//	clock.go        the clock, which counts the time that the machine slept
//	sleep_linux.go  how Linux reports a suspension
//	sleep_other.go  other systems, which do not report it
//	scheduler.go    one goroutine that wakes all sleepers when they are due
//	heap.go         the alarms of a scheduler, ordered by time
//	timer.go        the timer for the Tick of a process.Client
//
// The lock of each type is a leaf: no other lock is taken while it is held. A
// Quorum has two schedulers with one goroutine each. A sleeper is whatever a
// scheduler wakes; in this project it is a claim.
package wake
