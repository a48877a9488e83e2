// Package protocol is what the rooms of the pure part share: the words between
// a client and a node, records, quorums, and the rules. The algorithm, how one
// client process acquires, keeps and releases claims on a quorum of independent
// nodes, stands in these rooms. Each imports only rooms above it in this list:
//
//	protocol   requests, answers, records, quorums, rules
//	lease      one claim, and one operation on a record, at one name
//	nodeset    which servers are the nodes, which replies count, and their clocks
//	change     how an operator changes the set: only internal/operator and sim use it
//	repair     how a node that lost its data gets the records back
//	process    one client process: what an event leads to, in which order
//
// Everything in them is pure. They have no clock, no goroutine and no network.
// The runtime (internal/core) and the simulator (internal/sim) drive the same
// code: they pass the time and an event, and take what is to be sent and when
// to wake.
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
// These files are those of internal/lease.
//
//	1  Start     join(id, T0) goes to all nodes at once        claim.go
//	2  Settle    q nodes hold the claim at exactly T           advance.go
//	3  Admit     q usable views vote; semaphores count, too    admit.go, views.go, capacity.go
//	4  Wait      pushes and hints say when to ask again        advance.go, answer.go
//	5  Deadline  rule 3 holds with the views usable at t       admit.go
//	6  Renew     a node that misses the claim gets it back     advance.go
//	7  Leave     every node that was asked is left             claim.go
//	8  Push      a waiter that q nodes vote for is in at once  claim.go
//	10 Eviction  q nodes' words end a hold                     claim.go
//
// # Files
//
//	types.go        requests, answers, pushes, and why a reply counts, or does not
//	record.go       what is recorded of a name
//	class.go        how urgent a request is where a node has no room
//	window.go       how far tickets may be from clocks
//	group.go        which nodes a client asks
//	quorums.go      which nodes make a quorum, also while two sets count
//	rules.go, rules_local.go, rules_repair.go, rules_members.go   a switch for each rule, for the mutants
//	constants.go    the times that rules rest on, for the mutants
//	rules_on.go, rules_mutants.go   whether the switches are in the build
//
// # Invariants
//
//   - A reply that does not count changes nothing.
//   - Two claims that do not fit together are never both held.
//   - The fencing tokens of a name rise with each new holder.
//   - A claim that is lost stays lost.
//   - What is recorded at a majority is found by every later run.
package protocol
