// Package lease decides what one client does at one name. A [Claim] is queued on
// the nodes, settled, admitted, renewed and left. A [RegisterOp] is one operation
// on the record of the name. Both know nodes by their numbers, never by an
// address. Both are pure: the caller passes the time and an event, sends what is
// in Out, and calls Tick when Wake says so.
//
// # One lock
//
// Take three nodes A, B and C, and a name that is free. A quorum is two nodes.
//
//	join(id, T0) to A, B, C   the claim asks each node for a place at its ticket T0
//	A: ticket T0, vote        one node has it: Joining
//	B: ticket T0, vote        two nodes have it at T0: settled, so Waiting; both vote: Holding
//	C: ticket T0, vote        not needed any more, but the deadline moves on
//	beat(id) to A, B, C       after a third of the ttl, and again and again
//	leave(id) to A, B, C      each node votes for the next claim, and tells its client
//
// A claim for a name that is taken goes through the same phases, and stays longer
// in the first two:
//
//	        q nodes hold exactly T         q usable views vote (rule 3)
//	Joining ----------------------> Waiting ----------------------> Holding
//	   ^                               |                               |
//	   `----- T is raised (rule 4) ----'                               | the deadline
//	   |                               |                               v
//	   v                               v                              Lost
//	Expired: no T settled in a ttl   Expired: its leases have lapsed
//	NoQuorum: a try, few answers     Busy: a try that others are ahead of
//	Rejected: too many refuse        TooHeavy: a Resize took the permits
//
// Leave takes a claim from each of the first three phases to Left. A final phase
// is never left: a client that wants the lock again begins another claim, with a
// new id.
//
// # The deadline
//
// A node counts a lease from the moment at which it gets a request. The client
// counts the same lease from s, before the request left:
//
//	end(node) = s + ttl - drift
//	deadline  = the q-th latest end(node) among the nodes that vote
//
// While two sets of nodes count, the deadline is the earlier one of the two. For a
// semaphore it is the first end at which rule 3 does not admit the claim any more.
//
//   - Until the deadline q nodes keep the claim. Each of them began its lease later
//     than s, and drift covers clocks that run at different speeds. So no other claim
//     that does not fit beside this one gets q votes.
//   - The deadline needs no message. A client that hears nothing, or does not run at
//     all, has lost its hold by its own clock before a node may forget the claim.
//
// # When an answer is lost
//
// A client cannot tell a lost request from a lost answer, so it assumes the worse
// of the two each time.
//
//   - For its hold, it counts on nothing that it has not heard: the deadline stays.
//   - For the node, the request arrived: the claim may be there. So a claim that ends
//     leaves every node that was asked, also one that never answered.
//   - It asks again: after NodeTimeout the node counts as silent, and is asked after a
//     quarter of that, then a half, and so on. Requests are idempotent by the claim's id, so
//     a join that arrives twice keeps its place.
//   - A push that is lost costs time and nothing else: the next beat asks, and so does
//     the hint that came with the last answer.
//   - A leave that is lost keeps the name taken until the lease of the claim has ended.
//
// A node that has forgotten the claim says so (Missing), and gets it back at its
// ticket with a settle. A node that has lost all its data is another incarnation:
// what it said before does not count any more.
//
// # Files
//
//	claim.go            Claim: its requests and its end
//	claim_events.go     what happens to a claim
//	advance.go          what follows from that, and what is sent when: rules 2, 4 and 6
//	proposal.go         Config, the phases, and T
//	views.go            State: what a claim knows of each node: which of them hold and vote, until when
//	answer.go           what an answer, a push or silence changes in that
//	due.go              when a claim asks again without having heard from its nodes
//	admit.go, bare.go   ballot: rules 3 and 5, which lower claims count, how many permits there are
//	register.go         RegisterOp: one operation on a record, Paxos with tickets; what of it waits for room
//	register_events.go, attest.go   what happens to it, and what the answers decide
//	run.go              the order of such operations: lock, open, put again
//	ticketclock.go      which ticket a claim proposes
//	fanout.go           which nodes are asked first, and how long to wait
//	holder.go           which claim holds a name, for an onlooker
//	check.go            what must hold after each event, in builds with the tag invariants
//	state.go            copies of a claim, and its state as bytes, for searches
//
// The invariants are those of package protocol.
package lease
