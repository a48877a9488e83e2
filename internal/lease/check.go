package lease

import (
	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// What must hold of a claim after each event, and of an operation on a record
// after each conclusion. Builds with the tag invariants check it.

// claimBefore is what an event of a claim must not take back.
type claimBefore struct {
	phase  Phase
	ticket protocol.Ticket
	acks   [protocol.MaxNodes]protocol.Time
}

func before(c *Claim) (b claimBefore) {
	b.phase, b.ticket = c.State.phase, c.State.ticket
	for i := range c.State.peers {
		b.acks[i] = c.State.peers[i].ackSent
	}
	return b
}

// check panics if an event has broken an invariant of the claim.
func (was claimBefore) check(c *Claim, now protocol.Time) {
	v := &c.State
	invariant.Check(!was.phase.Final() || v.phase == was.phase, "a final phase is never left")
	invariant.Check(v.ticket >= was.ticket, "T only rises")
	invariant.Check(!v.evicted || v.phase == Lost, "an evicted hold is lost")
	for i := range v.peers {
		p := &v.peers[i]
		invariant.Check(!p.vote || p.held, "only a node that holds the claim votes for it")
		invariant.Check(p.ackSent >= was.acks[i], "an older answer does not replace a newer one")
	}
	if v.phase.Final() {
		return
	}
	invariant.Check(was.phase != Joining || v.phase == Joining || v.Sets.Met(v.exact(now)),
		"q nodes hold a claim that is settled at exactly T")
	if v.phase == Holding {
		invariant.Check(now < v.deadline, "a hold is over at its deadline")
		// While nodes are exchanged a hold keeps the deadline that it had before.
		if v.deadline > c.giveUpAt {
			invariant.Check(v.at(v.deadline-1).admitted(), "rule 3 admits a holder until its deadline")
			invariant.Check(!v.at(v.deadline).admitted(), "the deadline is the first moment at which rule 3 fails")
		}
	}
}

// check panics if a conclusion has broken an invariant of the operation, which
// had sent some requests before.
func (q *RegisterOp) check(now protocol.Time, sent int) {
	answered, taken := uint32(0), uint32(0)
	for i := range q.peers {
		p := &q.peers[i]
		if p.answered {
			answered |= 1 << i
			invariant.Check(now < p.answerSent.Add(q.Fresh), "an answer counts for less than half of a guard time")
		}
		if p.taken {
			taken |= 1 << i
		}
	}
	switch {
	case q.outcome == Asking:
		invariant.Check(q.Wake() > now, "what depends on time alone is done when its time comes")
	case len(q.Out) != sent:
		invariant.Check(false, "an operation that is decided asks no node")
	case q.outcome != Settled:
	case q.Op == protocol.OpRead:
		invariant.Check(q.Sets.Met(answered), "a read is settled by the answers of a quorum")
	default:
		invariant.Check(q.Sets.Met(taken), "an open or a put is settled when a quorum has taken it")
	}
}
