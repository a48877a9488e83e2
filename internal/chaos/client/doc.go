// Package client is what client processes do. The harness sees one as a Client;
// in the process itself goroutines work in turns, and write down each step.
//
//	client.go         a process in its several lives, seen by the harness
//	worker.go         the main of a client process
//	work.go           the kinds of work, their names and capacities
//	work_once.go      once, round after round
//	work_leader.go    campaigns, terms and questions for the leader
//	work_redsync.go   redsync: the control, and the rivals
//	works.go          mutex, reader/writer lock and semaphore
//	turn.go           how one goroutine asks, holds, uses and releases
//	env.go            what a process gets at its start, and reaches nodes by
//	rules.go          which rules of the library can be left out
//	control.go        what is expected to fail
//
// A life is one process of a client. A turn is a goroutine's way of working on
// one name.
package client
