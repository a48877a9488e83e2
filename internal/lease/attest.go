package lease

import (
	"math"
	"math/bits"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// What the answers of nodes prove about a record: which nodes can attest that
// there is nothing newer, when an operation is decided, and what it has found.
//
// Invariant: what was recorded at a majority is known to at least one of any q
// nodes that are caught up, or of all nodes.

// attestingQuorum reports whether the nodes that have answered can attest that
// there is nothing newer: q nodes that are caught up, or all nodes, since then
// no other node is left to ask.
func (q *RegisterOp) attestingQuorum() bool {
	caughtUp, all := uint32(0), uint32(0)
	for i := range q.peers {
		p := &q.peers[i]
		if !p.answered || !q.recentEnough(p) ||
			p.entry.Forged { //mutant:RuleForged
			continue
		}
		all |= 1 << i
		if i+1 != q.Repair &&
			p.entry.CaughtUp { //mutant:RuleAttest
			caughtUp |= 1 << i
		}
	}
	return q.Sets.Met(all) && (q.Sets.Attested(caughtUp) || q.Sets.AllAttested(all))
}

// CanListNames reports whether the other nodes that have listed their names
// suffice to repair a node. listed are all nodes that have listed them, and
// caughtUp are those of them that are caught up. It corresponds to
// attestingQuorum before the names are known. kept says that the node has kept
// its data since it entered: see RuleRepairBoth.
func CanListNames(sets protocol.Quorums, node int, kept bool, caughtUp, listed uint32) bool {
	next := sets.Next &^ (1 << node)
	if !kept && next != 0 && !protocol.Most(sets.Next, listed) && next&^listed != 0 { //mutant:RuleRepairBoth
		return false
	}
	others := sets.Present &^ (1 << node)
	lacking := bits.OnesCount32(others &^ listed)
	return sets.Attested(caughtUp) ||
		lacking == 0 //mutant:RuleEveryList=lacking <= 1
}

// judgeWrite decides an open or a put after each event, from what the nodes have
// answered so far. Like judgeRead it only sets the outcome, or when to ask a
// node: advance then sends what is due.
//
// A put is done when a majority has taken it. An open also returns what was
// recorded before, so it needs nodes that can attest. These need not have
// promised: docs/internals/protocol.md, The record. For example, an open with
// nodes A, B and C, of which B is not caught up:
//
//	A and B promise. That is a majority, so evidence is collected from now on.
//	A's promise counts as evidence, but B cannot attest. So C is asked again.
//	C does not vote for the claim, but is caught up: A and C attest. Settled.
func (q *RegisterOp) judgeWrite(now protocol.Time) {
	taken, superseded, missing := uint32(0), uint32(0), uint32(0)
	for i := range q.peers {
		p := &q.peers[i]
		if p.taken {
			taken |= 1 << i
		}
		// No node will vote for a claim that has ended, so a node that doesn't
		// vote for it now will never take the put.
		if p.superseded || p.missing && q.Over {
			superseded |= 1 << i
		} else if p.missing {
			missing |= 1 << i
		}
	}
	switch {
	case q.Sets.Blocked(superseded) || q.stuckTooLong(now, q.stuck(superseded, missing)):
		q.outcome = Superseded
	case !q.Sets.Met(taken):
		// Evidence must be from after a majority took the open: a put of an
		// earlier run may still reach a majority until then. That majority may
		// be gone, if one of its nodes lost its data, and then a later majority
		// needs new evidence.
		q.evidenceFrom = 0
	case q.Op == protocol.OpPut:
		q.outcome = Settled
	default:
		q.askOthers(now)
		if q.attestingQuorum() {
			q.outcome = Settled
		}
	}
}

// askOthers begins to collect evidence, if a majority has taken an open just
// now. It schedules a request to each node that has not taken it and whose
// answer is from before.
func (q *RegisterOp) askOthers(now protocol.Time) {
	first := q.evidenceFrom == 0
	if first {
		q.evidenceFrom = now
	}
	for i := range q.peers {
		if p := &q.peers[i]; p.pendingSince == 0 && (first || p.askAt == 0) &&
			!(p.answered && q.recentEnough(p)) {
			p.askAt = now
		}
	}
}

// recentEnough reports whether the newest answer of a node may be evidence. While
// an open collects evidence, the answer must be a promise, or to a request sent
// at evidenceFrom or later. Equality counts: askOthers sends at evidenceFrom.
//
// Fresh is not enough here. For example, node B has told claim f that nothing is
// recorded, and f's process stands still while its clock does, too:
//
//	The late put of an earlier run reaches B and C. C loses its data.
//	When f goes on, B's answer still counts as fresh, and C promises.
//	B is asked again, and f finds the value.
func (q *RegisterOp) recentEnough(p *registerPeer) bool {
	return q.evidenceFrom == 0 || p.taken ||
		p.answerSent >= q.evidenceFrom //mutant:RuleAfter=true
}

// stuck reports whether the first operation of a run can neither reach a
// majority nor be superseded as things are. For example, node A has a record of
// the near future, and claim e is settled at A and B, as in
// internal/sim/testdata/hopeless.txt:
//
//	A refuses e's open because of that record, and will refuse it for an hour.
//	B promises.
//	C does not vote for e, because another claim is ahead of e there.
//
// e holds, so without this rule its caller would wait until C votes for e, or for
// that hour.
//
// At least one node must have refused. If none has, each node that votes for the
// claim will take the operation. If too few vote, the claim is lost, and Follow
// ends the wait.
//
// A put of a run that was opened never counts as stuck: a majority promised at
// the open to take it, and needs no vote for that.
func (q *RegisterOp) stuck(superseded, missing uint32) bool { //mutant:RuleHopeless=false
	opened := q.Op == protocol.OpPut && !q.First
	return superseded != 0 && q.Sets.Blocked(superseded|missing) && !opened
}

// stuckTooLong starts the timer stuckSince when the operation gets stuck and
// stops it when it is not stuck any more: a node may still begin to vote. It
// reports whether the time is up (MaxPause, a third of the ttl). The run then
// gives up together with its claim. The next claim may be settled at other
// nodes.
func (q *RegisterOp) stuckTooLong(now protocol.Time, stuck bool) bool {
	if !stuck {
		q.stuckSince = 0
		return false
	}
	if q.stuckSince == 0 {
		q.stuckSince = now
	}
	return now >= q.stuckSince.Add(q.MaxPause)
}

// judgeRead decides what is recorded. A value known only to a minority is
// written to a majority before a caller gets it, unless a later run may have
// begun: rule 3 of the record.
func (q *RegisterOp) judgeRead(now protocol.Time) {
	if !q.attestingQuorum() || q.Repair != 0 && !q.peers[q.Repair-1].answered || q.All && !q.answered() {
		return
	}
	have, silent := uint32(0), uint32(0)
	for i := range q.peers {
		switch p := &q.peers[i]; {
		case !p.answered:
			if p.failures == 0 {
				silent |= 1 << i
			}
		case p.entry.Version.Compare(q.newest.Version) >= 0 && q.sure(p):
			have |= 1 << i
		}
	}
	chosen := q.Sets.Met(have) || q.newest.Version == protocol.Version{} //mutant:RuleRepair=true
	may := chosen || q.promise.Run(q.newest.Version) <= 0                //mutant:RuleLater=true
	switch {
	case !may && !q.Sets.Met(have|silent):
		q.outcome = Inconclusive
		return
	case !may:
		return
	case chosen && (q.Repair == 0 || !q.lacks(q.Repair-1)) && !(q.All && q.lacking()):
		// A leader does not count as gone just because one node is slow: either it is
		// known whether the claim that recorded the newest value is still running, or
		// every remaining node has failed to answer.
		if _, certain := q.Left(); !q.Alive || certain || q.answered() {
			q.outcome = Settled
		}
		return
	}
	for i := range q.peers {
		p := &q.peers[i]
		wanted := q.Repair == 0 || i == q.Repair-1 || !chosen || q.All
		// A node that is not caught up may be due only to be read again.
		free := p.pendingSince == 0 && (p.askAt == 0 || !p.entry.CaughtUp && !p.repairTried)
		if p.answered && q.lacks(i) && wanted && free && !p.repair {
			p.askAt, p.repair, p.repairTried = now, true, true
		}
	}
}

// sure reports whether the newest value counts as recorded at a node that has it.
// If a later run has begun, it does not count at a node that is not caught up.
// Such a node may have forgotten the promise of that run, and a settle that
// arrived late may have brought it the claim of the run before: it took the
// value from that after the later run had looked for it.
func (q *RegisterOp) sure(p *registerPeer) bool {
	return p.entry.CaughtUp || q.promise.Run(q.newest.Version) <= 0 //mutant:RuleLateRead=true
}

// answered reports whether every node that is asked has answered or failed. A
// node that has left the set is not asked any more; without that exception the
// read of a client that knew the node would wait forever.
func (q *RegisterOp) answered() bool {
	for i := range q.peers {
		if p := &q.peers[i]; !p.answered && p.failures == 0 && q.Absent&(1<<i) == 0 {
			return false
		}
	}
	return true
}

// lacking reports whether a node that is asked, has answered and has not failed
// since lacks the newest value.
func (q *RegisterOp) lacking() bool {
	for i := range q.peers {
		if p := &q.peers[i]; p.answered && q.lacks(i) && p.failures == 0 && q.Absent&(1<<i) == 0 {
			return true
		}
	}
	return false
}

// lacks reports whether a node does not have the newest value yet. A node that
// is being repaired must have the newest promise too.
func (q *RegisterOp) lacks(i int) bool {
	e := &q.peers[i].entry
	return e.Version.Compare(q.newest.Version) < 0 || i == q.Repair-1 && e.Promise.Run(q.promise) < 0
}

// Decides reports whether a reader must follow a read with a run of its own. A
// register is undecided if a minority has a value that a later run may not have
// found: that run, or the next one, decides.
func Decides(undecided, decided bool) bool {
	return undecided && !decided //mutant:RuleRepairDecide=false
}

// Newest returns the newest value that any node has shown.
func (q *RegisterOp) Newest() protocol.Stored { return q.newest }

// Left returns the time left of the lease of the claim that has recorded the
// newest value, as a majority sees it, and whether that is certain. It is
// uncertain while some nodes have not answered, because a claim may be held
// although too few nodes are known to hold it.
func (q *RegisterOp) Left() (left time.Duration, certain bool) {
	held, dead := uint32(0), uint32(0)
	left = math.MaxInt64
	for i := range q.peers {
		switch p := &q.peers[i]; {
		case q.Sets.All()&(1<<i) == 0 || !p.answered:
		case p.entry.Version.Run(q.newest.Version) == 0 && p.entry.Left > 0:
			held |= 1 << i
			left = min(left, p.entry.Left)
		default:
			dead |= 1 << i
		}
	}
	// The claim has ended if so many nodes have dropped it, or never had it,
	// that the others are no quorum, whatever those nodes say.
	if q.Sets.Blocked(dead) {
		return 0, true
	}
	if l, ok := protocol.Reached(q.Sets, held,
		func(i int) time.Duration { return q.peers[i].entry.Left }); ok {
		return l, true
	}
	if !q.Sets.Each(func(set uint32) bool { return set&held != 0 }) {
		return 0, false
	}
	return left, false
}

// Adopt is rule 1 of the record. It returns the value that an open has found,
// and whether fewer than a majority are known to have it. In that case the
// value must be put under the version of the new run before any caller gets it.
func (q *RegisterOp) Adopt() (s protocol.Stored, few bool) {
	have := uint32(0)
	for i := range q.peers {
		if p := &q.peers[i]; p.answered && p.entry.Version == q.newest.Version && q.sure(p) {
			have |= 1 << i
		}
	}
	s = q.newest
	s.Version = protocol.Version{Ticket: q.Stored.Ticket, ID: q.Stored.ID}
	few = q.newest.Version != protocol.Version{} && !q.Sets.Met(have) //mutant:RuleAdopt=false
	return s, few
}
