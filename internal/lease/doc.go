// Package lease is what one client does at one name: a [Claim] that is queued
// on the nodes, settled, admitted, renewed and left, and a [RegisterOp], one
// operation on the record of the name. It knows nodes by their numbers, never
// an address. It is pure: the caller passes the time and an event, and takes
// Out and Wake.
//
//	join, answers --> settle -----> admitted --> holding --> advance --> leave
//	                  q nodes at T  q views vote  deadline
//
//	claim.go        a claim, its phases, its requests and its end
//	answer.go       what an answer, a push or a failure changes
//	advance.go      start, tick, and what is sent when it is due: rules 1 and 6
//	admit.go        rules 2 to 5
//	views.go        what a claim knows of each node: which of them hold and vote, until when
//	count.go, capacity.go           which lower claims count; the permits of a semaphore
//	regroup.go      what claims keep when the set of nodes changes
//	register.go, attest.go, outbox_record.go   one operation on a record: Paxos with tickets
//	run.go          the order of such operations: lock, open, put again
//	ticketclock.go  which ticket a claim proposes
//	fanout.go       which nodes are asked first, and how long to wait
//	holder.go       which claim holds a name, for an onlooker
//	state.go        copies of a claim, and its state as bytes, for searches
//
// The invariants are those of package protocol.
package lease
