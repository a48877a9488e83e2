// Package client is the program of the client processes. The harness controls a
// process through a Client. Inside the process, goroutines take turns at the
// names and log each step.
//
//	client.go         a process through its lives, as the harness sees it
//	worker.go         the main of a client process
//	work.go           the kinds of work, their names and capacities
//	work_once.go      once, round after round
//	work_leader.go    campaigns, terms and questions for the leader
//	work_redsync.go   redsync: the control, and the rivals
//	works.go          mutex, reader/writer lock and semaphore
//	turn.go           how one goroutine asks, holds, uses and releases
//	env.go            what a process is given at its start, and how it reaches the nodes
//	rules.go          which rules of the library can be left out
//	control.go        what is expected to fail
//
// A client that is killed is started again: each of its processes is one life.
// A turn is one goroutine working on one name.
package client
