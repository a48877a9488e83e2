package lease

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// What the answer, push or silence of a node changes in the view of that node.
// Invariant: a view only gains what its node said in the same incarnation and
// at the same ticket, and an older answer never replaces a newer one.

// take replaces the view of a node by what its answer to r says.
func (p *peer) take(v *State, now protocol.Time, r protocol.Request, a protocol.Answer) {
	p.failures, p.refused = 0, false
	switch a.Status {
	case protocol.OK:
		p.acknowledge(v, r, a)
		p.askAt, p.hinted = protocol.Never, false
		switch {
		case p.askAgain && p.pendingSince == 0: // the answer that is outstanding will bring its own hint
			p.askAgain, p.askAt = false, now
		case a.Wait > 0:
			p.askAt, p.hinted = now.Add(a.Wait), true
		}
		p.waiters = a.Waiters
		if p.extra().shrinkPending && r.Op != protocol.OpBeat && r.Sent >= v.shrunkAt {
			p.extraOrNil.shrinkPending = false
		}
		if r.Op == protocol.OpSettle && r.Ticket == v.ticket {
			p.behind = false
		}
	case protocol.Missing: // the node no longer has the claim; rule 6 brings it back
		*p = peer{ackSent: r.Sent, askAt: now, behind: p.behind}
	case protocol.Recovering: // the node has lost its data: ask again when the guard time is over
		again := peer{ackSent: r.Sent, askAt: now.Add(max(a.Wait, time.Millisecond)), failures: 1}
		if v.phase == Holding && p.usable(v, now) { //mutant:RuleOutlast
			// The guard time outlasts the lease that the node has forgotten, so
			// it still keeps others out: to a holder, a node that has come back
			// is worth as much as one that has not.
			again.held, again.ticket, again.incarnation = true, p.ticket, p.incarnation
			again.vote, again.pushUnsure = p.vote, p.pushUnsure
			m := p.extra()
			again.extraOrNil = &peerExtra{
				lowerSet: m.lowerSet, admittedSet: m.admittedSet, limit: m.limit, limitAt: m.limitAt,
				leaseEnds: p.leaseEnds(v), shrinkPending: m.shrinkPending,
			}
		}
		*p = again
	case protocol.Clash:
		*p = peer{ackSent: r.Sent, askAt: protocol.Never, refused: true}
	}
}

// Doubt is how the clocks contradict an answer to a claim.
type Doubt uint8

const (
	NoDoubt    Doubt = iota
	DoubtOld         // the ticket is old by the node's own clock: the node may have forgotten one above it
	DoubtAhead       // the node refuses the ticket as too far ahead of its clock
)

// doubts compares a ticket with the clock of the node that answers. It is the
// only function that does. A holder already has its ticket, so its answers are
// not in doubt.
func (v *State) doubts(r protocol.Request, a protocol.Answer) Doubt {
	switch {
	case a.Status == protocol.Ahead:
		return DoubtAhead
	case a.Status == protocol.OK && r.Op != protocol.OpLeave && v.phase < Holding &&
		v.Window.Old(a.Ticket, a.Clock):
		return DoubtOld
	}
	return NoDoubt
}

// credible reports whether a node's answer that it has the claim, with ticket
// a.Ticket, counts (ticketclock.go). A single node with a wrong clock or a
// forged ticket must not push the claim's ticket ahead, so a ticket beyond the
// ceiling does not count. If the ticket is old by the node's own clock, the
// node may have lost a later one. So an old ticket counts only if this client
// already has a view of the node, or if every node that can attest confirms the
// claim's ticket. A holder's ticket is final, so its answers always count.
func (v *State) credible(now protocol.Time, p *peer, a protocol.Answer, old bool) bool {
	if v.Window == 0 || v.phase == Holding {
		return true
	}
	ceiling := int64(v.ticket) + v.Window.Half() + int64(now.Sub(v.began)/time.Microsecond)
	if int64(a.Ticket) > ceiling { //mutant:RuleCeiling
		return false
	}
	fresh := !old //mutant:RuleOld=true
	return fresh || p.incarnation == a.Incarnation && p.running(v, now) || v.Sets.Attested(v.exact(now))
}

// rejectAnswer handles an answer that does not count because the ticket and the
// clock of the node are too far apart. The claim behaves as if there had been
// no answer, but asks again only when the node may give the ticket.
func (p *peer) rejectAnswer(v *State, now protocol.Time, r protocol.Request, a protocol.Answer) {
	failures := min(p.failures, mostFailures-1)
	*p = peer{ackSent: r.Sent, pendingSince: p.pendingSince, askAt: protocol.Never, failures: failures + 1}
	if v.Try && v.phase != Holding { // a try asks once
		return
	}
	// Many claims may be refused at the same moment. They must not all ask
	// again at the same moment.
	pause := v.NodeTimeout << p.failures / 8
	pause += pause * time.Duration(v.ID[3]) / 256
	p.askAt = now.Add(min(max(a.Wait, pause), v.interval()))
}

// noteSilence records that the request to the node was not answered in time, or
// has failed.
func (p *peer) noteSilence(v *State, now protocol.Time) {
	p.pendingSince, p.behind, p.askAt, p.hinted = 0, false, protocol.Never, false
	p.failures = min(p.failures, mostFailures-1) + 1
	if !p.refused && (!v.Try || v.phase == Holding) { // a try asks once
		p.askAt = now.Add(min(v.NodeTimeout<<p.failures/8, v.interval()))
	}
}

// acknowledge records the lease and the view that came with an answer. Within
// one incarnation and at one ticket a view only loses claims. So a vote stays
// given and the newest lists are the smallest, unless the node may have stored
// the claim twice (distrustPushes). An answer at another ticket or of another
// incarnation starts a new view.
func (p *peer) acknowledge(v *State, r protocol.Request, a protocol.Answer) {
	same := p.held && p.ticket == a.Ticket &&
		p.incarnation == a.Incarnation //mutant:RuleIncarnation
	if !same {
		p.vote = false
	}
	if p.extraOrNil != nil {
		if !same {
			p.extraOrNil.lowerSet, p.extraOrNil.admittedSet = lowerSet{}, lowerSet{}
		}
		if p.incarnation != a.Incarnation {
			p.extraOrNil.limit, p.extraOrNil.limitAt = 0, 0
		}
	}
	ends := p.leaseBrought(v, r)
	p.held, p.ticket, p.incarnation, p.ackSent, p.evicts = true, a.Ticket, a.Incarnation, r.Sent, false
	p.ended = v.ended(a)
	if ends != 0 || p.extraOrNil != nil {
		p.mutableExtra().leaseEnds = ends
	}
	if a.Foreign {
		p.distrustPushes()
	}
	pushedVote := p.vote && !p.pushUnsure && !a.Foreign && !a.Vote // by the push that voted
	p.vote = a.Vote || pushedVote
	if v.Counting && !pushedVote {
		v.takeLowerSet(p.mutableExtra(), r, a)
	}
	p.resized(a.Limit, a.LimitAt)
	v.votedOnce = v.votedOnce || p.vote
	if barred := a.Foreign || a.Barred; barred || p.extraOrNil != nil {
		p.mutableExtra().barred = barred
	}
	if early := p.extra().earlyPush; early.Vote && p.takeVote(v, early) {
		p.extraOrNil.earlyPush = protocol.Push{}
	}
}

// ended reports whether the node says that the leases ahead of the claim have
// ended there; see lapsed, which serves rule 11 of the client. The node says so
// by the shortest hint, 1 ms. To the hint of a claim far back in the queue it
// adds rank*ttl/4096, so that such a claim asks later. This must agree with
// answer.lua and with wait in the model's portion.go.
func (v *State) ended(a protocol.Answer) bool {
	later := time.Duration(int64(a.Rank)*v.TTL.Milliseconds()/4096) * time.Millisecond
	return a.Wait > 0 && a.Wait <= time.Millisecond+later
}

// leaseBrought returns when the lease granted by the answer to r ends, or 0 if
// that follows from the claim's ttl. The node gives a full lease for each
// settle, even if the settle only carries the weight of Shrink. If the claim is
// not renewed, such a lease does not move the deadline, so that the claim never
// relies on more than before.
//
// Note: It would be incorrect to settle with the rest of the lease as the ttl.
// The answer to an earlier Extend that has yet to arrive would then promise
// more than the node keeps.
func (p *peer) leaseBrought(v *State, r protocol.Request) protocol.Time {
	if v.phase != Holding || !v.NoRenewal || r.Op != protocol.OpSettle || !p.held || v.shrunkAt == 0 {
		return 0
	}
	return max(p.leaseEnds(v), min(v.deadline, (&peer{ackSent: r.Sent}).leaseEnds(v)))
}

// takeLowerSet records what an answer says about the lower claims. A claim that
// needs only votes does not ask for this and does not keep it.
func (v *State) takeLowerSet(m *peerExtra, r protocol.Request, a protocol.Answer) {
	// A holder keeps the digests it was admitted by: newer views are subsets,
	// but one that is newer than the others would no longer compare equal to
	// them.
	if a.HasTotals && (!m.known || v.phase != Holding) {
		m.known, m.sum, m.digest, m.all = true, a.Sum, a.Digest, totals{a.Sum, a.Digest}
		if a.Listed {
			m.all = totals{a.AllSum, a.AllDigest}
		}
	}
	// Lists are counted, not compared: the newest is the best.
	switch base := (totals{a.BaseSum, a.BaseDigest}); {
	case a.HasTotals && a.Sum == 0:
		m.list(nil, 0, totals{})
	case r.List && a.Vote && !a.Listed:
		if r.Ticket == v.listDepth.firstTicket(v.ticket) && v.listDepth > 0 {
			v.listDepth--
		}
	case !a.Listed || r.Op != protocol.OpBeat && base != totals{}:
	case base == totals{}: // all of them
		m.list(a.Lower, 0, base)
	case r.Ticket > 0:
		m.list(a.Lower, r.Ticket, base)
	}
}

// takeVote makes the view of p a vote if the push belongs to that view: same
// incarnation, same ticket. If the push may be older than the view, the node is
// asked.
func (p *peer) takeVote(v *State, m protocol.Push) bool {
	if !p.held || m.Ticket != p.ticket || m.Incarnation != p.incarnation { //mutant:RulePushView=!p.held
		return false
	}
	switch {
	case p.vote:
	case p.pushUnsure:
		p.askAgain = true
	default:
		p.resized(m.Limit, m.LimitAt)
		p.vote, v.votedOnce = true, true
		if v.Counting {
			s := &p.mutableExtra().lowerSet
			s.known, s.sum, s.digest, s.all = true, m.Sum, m.Digest, totals{m.Sum, m.Digest}
			if m.Sum == 0 {
				s.list(nil, 0, totals{})
			}
		}
	}
	return true
}

// resized records the number of permits that a node knows, if its Resize is
// newer.
func (p *peer) resized(limit uint64, at protocol.Ticket) {
	if at > p.extra().limitAt {
		m := p.mutableExtra()
		m.limit, m.limitAt = limit, at
	}
}

// distrustPushes records that the node may have taken its vote back within one
// incarnation and at one ticket. From then on only answers say whether it
// votes, and a push is a reason to ask: docs/internals/protocol.md, "Pushes".
func (p *peer) distrustPushes() { p.pushUnsure = true } //mutant:RulePushOnce

// forgetReassigned drops what was said under a number that now stands for
// another member (RuleSetNumber).
func (v *State) forgetReassigned(now protocol.Time, reassigned uint32) { //mutant:RuleSetNumber
	for i := range v.peers {
		// The outstanding answer comes from the earlier member too.
		if p := &v.peers[i]; reassigned&(1<<i) != 0 {
			*p = peer{ackSent: now, pendingSince: p.pendingSince, askAt: now}
		}
	}
}
