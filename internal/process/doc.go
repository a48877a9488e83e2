// Package process decides what one client process does: what each event leads
// to, and in which order. Both the runtime and the simulator drive it, and it
// uses the packages below it. It is pure: it has no clock, goroutine or
// network. It has locks, because the replies of many nodes are judged
// concurrently.
//
//	                 +--------------------- Client -----------------------+
//	reply, push ---> | incarnation, clocks, guard time, tickets, repair   | --> Action:
//	connection  ---> | (own locks; nearly every reply takes one)          |     ask, mark,
//	time        ---> +----------------------------------------------------+     repair, wake
//	                      | Verdict
//	                 +----v--- Attempt ---+    +--- RegisterOp ----+
//	start, leave --> | outbox, Claim      |    | Paxos             | --> Out, Wake, News
//	                 | (a lock for each)  |    | (a lock for each) |
//	                 +--------------------+    +-------------------+
//
//	client.go, client_events.go   one process: what an event leads to
//	clocks.go                 what it makes of its nodes' clocks
//	start.go                  how claims begin: which nodes they ask, with which tickets
//	attempt.go                one claim in its process; what claims at a name share
//	outbox.go, backlog.go     what is sent when a node has no room
//	localqueue.go, localunlock.go   which caller of a process holds a value next
//	state_attempt.go          the state of an attempt as bytes, for searches
package process
