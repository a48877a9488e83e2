// Package protocol is the algorithm: how one client process acquires, keeps and
// releases claims on a quorum of independent nodes. Everything in it is pure.
// It has no clock, no goroutine and no network. The runtime (internal/core) and
// the simulator (internal/sim) drive the same code: they pass the time and an
// event, and take what is to be sent and when to wake.
//
// A process has one [Client], an [Attempt] for each of its claims, and a
// [RegisterOp] for each operation on a record:
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
// # Terms
//
//   - A node is one independent Redis. A quorum, q, is a majority of the N nodes.
//   - A claim is one participant's request for a name, queued on the nodes.
//   - A ticket is a claim's place in the order. The fence of a name at a node is the
//     highest ticket that the node gave.
//   - A view is what one node said of one claim: whether it votes for it, and which
//     claims have lower tickets.
//   - A lease is how long a node keeps a claim without a renewal. The deadline of a
//     holder is when its hold ends if nothing more is heard.
//   - An incarnation is one life of a node's data. A node that lost its data votes
//     again when the guard time is over.
//   - A record is what the nodes keep of a name beside its claims.
//
// # Rules
//
// The rules have the numbers of docs/internals/protocol.md, which proves them.
//
//	1  Start     join(id, T0) goes to all nodes at once        claim.go
//	2  Settle    q nodes hold the claim at exactly T           settle.go
//	3  Admit     q usable views vote; semaphores count, too    admit.go, count.go, capacity.go
//	4  Wait      pushes and hints say when to ask again        admit.go, answer.go
//	5  Deadline  rule 3 holds with the views usable at t       admit.go
//	6  Renew     a node that misses the claim gets it back     renew.go
//	7  Leave     every node that was asked is left             claim.go
//	8  Push      a waiter that q nodes vote for is in at once  answer.go
//
// # Other decisions
//
//	client.go, client_events.go, action.go   one process: what an event leads to, in which order
//	attempt.go, name.go                 one claim in its process; what claims at a name share
//	types.go        requests, answers, pushes
//	peer.go         what a claim knows of one node
//	ticketclock.go  which ticket a claim proposes, and which a node refuses
//	record.go, register.go, register_result.go, attest.go   the records: Paxos with tickets
//	clockbounds.go                      whether a node's clock and ours have parted
//	nodeclock.go, clockjudge.go         which of the two it was
//	fanout.go       which nodes are asked first, and how long to wait
//	incarnation.go  which replies of a node count
//	holder.go       which claim holds a name, for an onlooker
//	localqueue.go, localunlock.go, localline.go   which caller of a process holds a value next
//	repair.go, repair_timing.go         which node is repaired, and when
//	repair_step.go, repair_attempt.go, repair_node.go, repair_spare.go   by which steps
//	membership.go, finding.go, following.go   which set counts: at the start, and later
//	binding.go      what a server at the address of a member counts as
//	configuration.go, recording.go      what a set is, and how all its nodes come to record it
//	exchange.go     which configuration may follow which one
//	regroup.go      what claims and operations keep when the set changes
//	takeback.go     how a holder gets its place at nodes that have it at a higher ticket
//	vouch.go        whether enough members say what the set is, so that a node gets its place back
//	quorums.go      which nodes make a quorum, also while two sets count
//	backlog.go, outbox.go, outbox_record.go       what is sent when a node has no room
//	rules.go, rules_local.go, rules_repair.go, rules_members.go   a switch for each rule, for the mutants
//	rules_on.go, rules_mutants.go       whether the switches are in the build
//	state.go        copies of a claim, and its state as bytes, for searches
//
// # Invariants
//
//   - A reply that does not count changes nothing.
//   - Two claims that do not fit together are never both held.
//   - The fencing tokens of a name rise with each new holder.
//   - A claim that is lost stays lost.
//   - What is recorded at a majority is found by every later run.
package protocol
