// Package protocol defines what the packages of the pure core share: the
// messages between a client and a node, records and quorums. Together these
// packages contain the algorithm: how a client process acquires, keeps and
// releases claims on a quorum of independent nodes. Each package imports only
// packages above it in this list:
//
//	protocol   requests, answers, records, quorums
//	lease      one claim, and one operation on a record, for one name
//	nodeset    which servers are the nodes, which replies count, and their clocks
//	change     how an operator changes the set: only internal/operator and sim use it
//	repair     how a node that lost its data gets the records back
//	process    one client process: what an event leads to, in which order
//
// All of them are pure: they have no clock, no goroutines and no network. The
// runtime (internal/core) and the simulator (internal/sim) run the same code.
// They pass in the time and an event, and get back what to send and when to
// wake up.
//
// # Terms
//
//   - A node is one independent Redis. A quorum, q, is a majority of the N nodes.
//   - A claim is one participant's request for a name, queued on the nodes.
//   - A ticket is a claim's place in the order. The fence of a name at a node is the
//     highest ticket that the node gave.
//   - A view is what one node reported about one claim: whether the node votes for
//     the claim, and which claims have lower tickets.
//   - A lease is how long a node keeps a claim without a renewal. The deadline of a
//     holder is when its hold ends if no more answers arrive.
//   - An incarnation is one lifetime of a node's data. A node that lost its data
//     votes again after the guard time.
//   - A record is what the nodes store for a name besides its claims. The record of
//     a name is a register: reads, opens and puts of it agree on one value, by
//     Paxos. A register whose name begins with [Successors] decides which
//     configuration follows another one.
//   - The marker of a node is a key with a random value, the node's incarnation. A
//     node without its marker has lost its data.
//   - A configuration is one version of the set: its members, and the settings that
//     they share. A client counts on a configuration if it asks that
//     configuration's nodes and takes its majorities. A request counts on the
//     configuration of the client that sent it, and a node with another one refuses
//     the request.
//
// # Rules
//
// The rules have the numbers of docs/internals/protocol.md, which states and
// proves each of them. The files of internal/lease say which rules they
// implement.
//
// # Invariants
//
//   - A reply that does not count changes nothing.
//   - Two claims that exclude each other are never both held.
//   - The fencing tokens of a name rise with each new holder.
//   - A claim that is lost stays lost.
//   - What is recorded at a majority is found by every later run.
package protocol
