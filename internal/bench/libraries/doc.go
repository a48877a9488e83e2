// Package libraries has the libraries that are compared, each as a Client with
// Lockers, and the floors, which do the same without any library's logic.
//
//	libraries.go library.go          the libraries for each job, and their interface
//	quorate.go sharing.go            ours: mutexes, read locks, permits
//	redsync.go peers.go              the other libraries
//	floor.go fenced.go               the bare commands, on raw connections
//	guard.go                         checks that locks really exclude
package libraries
