// Command chaos injects faults into real systems and checks the locks from
// outside. It runs real redis-server processes behind fault-injecting proxies,
// and real client processes. A seeded nemesis kills, stops and partitions both,
// deletes the servers' data, and sets their clocks.
//
//	go run ./internal/chaos -nodes 3,5 -for 2m -seed 1 -report docs/internals/chaos.md
//
// The judge does not ask the library. Every client logs what it asked for and
// what it got, with times of the machine's monotonic clock, which all processes
// share. The resource that the locks protect logs the requests that reached it.
// After the run the checkers read both logs.
//
// # Rooms
//
// This package runs the suite, from the flags to the report. Each package in
// the list uses only those below it, except that client and judge do not know
// each other:
//
//	main.go     the flags, and the exit status
//	run.go      one run: servers, clients, faults, and the check for leftovers
//	report.go   the output on the terminal and in docs/internals/chaos.md
//	verdict.go  the result of a run: whether it is conclusive, and what it shows
//	plan.go     the settings of one run
//	nemesis     the faults, and how operators exchange nodes
//	fleet       the servers, the proxies in front of them, and what the harness knows about both
//	client      the client processes
//	judge       the checkers
//	record      the logs of clients and of the resource
//
// # What a hold is
//
// A hold counts from the moment after Lock returned until the earliest of: the
// moment before Unlock was called, the moment when the lease's context was seen
// to have ended, and the last logged ValidUntil. If the validity was shortened
// because a node had lost its data, the hold counts only until it was last seen
// valid. A process that is killed or stopped is judged by what it last knew.
// Wherever a process is interrupted between reading the clock and logging, the
// judged interval lies inside the true one. So every violation that the
// checkers report is real.
//
// # What is done once
//
// Round after round, all clients want the same work done, and learn from the
// nodes which run did it. All must learn of the same run, no call may return
// before that run has, and no run may begin with a valid claim after that. If a
// process is killed during its run, or the run cannot be recorded, the work is
// done again. Such runs are counted.
//
// # Rivals
//
// Meanwhile a redsync client locks the names of mutexes and elections by their
// plain keys. Its holds end at its own Until, and are judged together with
// ours, except after a node has lost its data in a way that redsync does not
// tolerate: see judge/check_rival.go. It keeps its list of nodes while the set
// changes, and is given the new list after each exchange: see fleet/lists.go.
// It stops when all faults have ended, because a client that polls can delay
// waiting clients without limit.
//
// # Controls
//
// Controls are runs that must fail, which shows that a failure would be
// noticed. There are a resource that accepts any token, redsync under the same
// faults, and rivals that lock other keys than they claim.
//
// A build with the overlay of the mutants can leave out rules of the library,
// one at a time; see client/rules.go. Real servers show votes-only and no-both,
// with faults of their own, and no-exact. The other rules matter only when
// faults coincide in ways that are rare within a minute, such as a late push
// and a rival, or when clocks stand still while a machine sleeps. The simulator
// (internal/sim) shows each of them.
//
// # Exit status
//
// 0 if all is well, 1 if a checker found a violation, 2 if the run is
// inconclusive: there were too few operations, or the harness itself has
// failed.
//
// An interrupt ends everything, and makes the run inconclusive.
//
// It needs a Unix system. On systems other than Linux, processes are left
// behind if the harness is killed. The track clocks, and nodes that sync each
// write to disk before they answer, need Linux and a C compiler. Without them,
// name the other tracks with -tracks, and use memory or everysec with -store.
package main
