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
// docs/internals/glossary.md has the terms, such as claim, ticket, fence and view.
//
// # Rules
//
// The rules have the numbers of docs/internals/protocol.md, which proves them.
// These files are those of internal/lease.
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
// # Invariants
//
//   - A reply that does not count changes nothing.
//   - Two claims that do not fit together are never both held.
//   - The fencing tokens of a name rise with each new holder.
//   - A claim that is lost stays lost.
//   - What is recorded at a majority is found by every later run.
package protocol
