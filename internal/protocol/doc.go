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
// The rules have the numbers of docs/internals/protocol.md, which says what
// each of them is and proves it. The files of internal/lease say which they
// own.
//
// # Invariants
//
//   - A reply that does not count changes nothing.
//   - Two claims that do not fit together are never both held.
//   - The fencing tokens of a name rise with each new holder.
//   - A claim that is lost stays lost.
//   - What is recorded at a majority is found by every later run.
package protocol
