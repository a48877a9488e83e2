// Package wake owns when things happen in a process: the clock by which it
// judges its leases, and what wakes its claims. It knows no node.
//
//	clock.go        the clock; it counts the time that the machine slept
//	sleep_linux.go  how a sleep of the machine is noticed
//	sleep_other.go  where the system does not say
//	scheduler.go    what is woken when, by one goroutine for all
//	heap.go         the order of the alarms
//	timer.go        the Tick of a process.Client
//
// The lock of each type is a leaf: no other lock is taken under it. The two
// schedulers of a Quorum have a goroutine each. A claim is a sleeper here.
package wake
