// Command chaos breaks what a quorum stands on, and shows what the locks do
// meanwhile: real redis-server processes, each behind fault-injecting proxies,
// real client processes, and a seeded nemesis that kills, stops, cuts off and
// robs of their memory both, and sets their clocks.
//
//	go run ./internal/chaos -nodes 3,5 -for 2m -seed 1 -report docs/internals/chaos.md
//
// The judge does not ask the library. Every client writes down what it asked
// and what it got, on the machine's one monotonic clock; a resource that the
// clients write to writes down what reached it. When all is over the checkers
// read both.
//
// # Rooms
//
// This one is a run, from the flags to the report. Each room of the list uses
// only those below it, but client and judge do not know each other:
//
//	main.go     the flags, and the exit status
//	run.go      one run: servers, clients, faults, and what is left at the end
//	report.go   what the terminal and docs/internals/chaos.md get
//	verdict.go  the result of a run: whether it shows anything, and what
//	plan.go     all that one run is made of
//	nemesis     what is broken, and how operators exchange nodes
//	fleet       the servers, the ways to them, and what the harness knows of both
//	client      what client processes do
//	judge       the checkers
//	record      what clients and the resource write down
//
// # What a hold is
//
// A hold counts from the moment after Lock returned until the earliest of: the
// moment before Unlock was called, the moment the lease's context was seen to
// have ended, and the last ValidUntil that was written down; where the validity
// was taken back before its time, because a node has forgotten it, until the
// last moment at which it was seen. A process that is killed or stopped is held
// to what it last knew. Whatever the order in which a process is interrupted
// between looking at the clock and writing it down, the interval so judged is
// inside the true one: what the checkers report is real.
//
// # What is done once
//
// Round after round all clients want the same thing done, and get from the
// nodes which run it was that did it. All get the same one, no call returns
// before that run has, and no run begins with a valid claim after that. What a
// run had done as its process was killed, or could not be recorded, is done
// again: such runs are counted.
//
// # Rivals
//
// A redsync client locks the names of mutexes and elections meanwhile, by their
// plain keys. Its holds end by its own Until, and are judged together with
// ours, except where a node has lost its data in a way that redsync does not
// bear: see judge/check_rival.go. It keeps its list of nodes while the set
// changes, and gets the new list after each exchange: see fleet/lists.go. It
// stops when all faults have ended: a client that polls delays those that wait
// without a bound.
//
// # Controls
//
// What must fail shows that failing would be seen.
// There are a resource that takes any token, redsync under the same faults, and
// rivals that lock other keys than they say.
//
// A build with the overlay of the mutants can leave out rules of the library,
// one at a time; see client/rules.go. Real servers show votes-only and no-both,
// with faults of their own, and no-exact. The others need faults to meet in
// ways that are rare within a minute, such as a late push and a rival, or
// clocks that stand still while a machine sleeps: the simulator (internal/sim)
// shows each of them.
//
// # Exit status
//
// 0 when all is well, 1 when a checker found something, 2 when the run says
// nothing: too few operations, or the harness itself has failed.
//
// An interrupt ends everything, and is a run that says nothing.
//
// It needs a Unix system; where it is not Linux, processes of a harness that is
// killed are left behind. The track clocks, and nodes that have each write on
// their disk before they answer, need Linux and a C compiler: without, name the
// other tracks with -tracks, and memory or everysec with -store.
package main
