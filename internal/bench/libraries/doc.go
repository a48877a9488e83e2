// Package libraries owns what is compared: each library as a Client with
// Lockers, and the floors, which do the same without any library's logic.
//
//	libraries.go library.go          which do a job, and what each must do
//	quorate.go sharing.go            ours: mutexes, read locks, permits
//	redsync.go peers.go              the others
//	floor.go fenced.go               the bare commands, on raw connections
//	guard.go                         sees that those inside fit
package libraries
