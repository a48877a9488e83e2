// Package lease is what one client does at one name: a [Claim] that is queued
// on the nodes, settled, admitted, renewed and left, and a [RegisterOp], one
// operation on the record of the name. It knows nodes by their numbers, never
// an address. It is pure: the caller passes the time and an event, and takes
// Out and Wake.
//
//	join, answers --> settle -----> admitted --> holding --> advance --> leave
//	                  q nodes at T  q views vote  deadline
//
//	claim_events.go what happens to a claim
//	claim.go        Claim: its requests and its end
//	advance.go      what follows from that, and what is sent when: rules 2, 4 and 6
//	proposal.go     proposal: what a claim asks for, its terms and its ticket; its phases
//	views.go        views: what a claim knows of each node: which of them hold and vote, until when
//	answer.go       what an answer, a push or silence changes in that
//	admit.go        ballot: rules 3 and 5, the views at one moment, and which lower claims count, and how many permits there are
//	register.go     RegisterOp: one operation on a record, Paxos with tickets; what of it waits for room
//	register_events.go, attest.go   what happens to it, and what the answers decide
//	run.go          the order of such operations: lock, open, put again
//	ticketclock.go  which ticket a claim proposes
//	fanout.go       which nodes are asked first, and how long to wait
//	holder.go       which claim holds a name, for an onlooker
//	state.go        copies of a claim, and its state as bytes, for searches
//
// The invariants are those of package protocol.
package lease
