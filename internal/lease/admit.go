package lease

import (
	"math/bits"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns rules 2 to 5: when a claim is settled (q nodes hold it at
// exactly T), which views admit it, what a waiter does, and until when a holder
// holds.
// Invariant: T only rises. Two settled claims have at least one node in common
// that holds both at their final tickets.
// Invariant: a claim is held at a time t only if rule 3 admits it with the
// views that are usable at t. So the deadline is the first end of a lease at
// which rule 3 fails.

// settle is rule 2. T stays as it is while enough nodes may still take it.
//
// Note: Here is an incorrect rule, which refuses a ticket that is too low:
//
//	if ticket <= fence { return refused }
//
// The client that is farthest away is always late, and never gets in.
func (c *Claim) settle(now protocol.Time) {
	if c.Sets.Met(c.exact(now)) {
		c.phase = Waiting
		return
	}
	if c.Rules.On(protocol.RuleAbandon) && now.Sub(c.began) >= c.TTL {
		c.End(now, Expired)
		return
	}
	known, open, top := uint32(0), uint32(0), c.ticket
	for i := range c.peers {
		p := &c.peers[i]
		if p.neverSent() || c.awaited(p) && (p.behind || !p.held) {
			open |= 1 << i
		}
		if c.running(p, now) {
			known |= 1 << i
			top = max(top, p.ticket)
		}
	}
	switch {
	case c.Sets.Met(c.exact(now) | open): // T may still be reached
	case c.Sets.Met(known) && top > c.ticket:
		c.follow(now, top)
	case c.Try && open == 0:
		c.End(now, NoQuorum)
	}
}

func (c *Claim) follow(now protocol.Time, top protocol.Ticket) {
	c.settleRounds++
	if c.settleRounds > 2 && c.Rules.On(protocol.RuleSpread) {
		// Another claim of the same residue proposes the same T, each node
		// keeps one of them off it, and both go on like that. Any T above
		// serves; let the two differ.
		most := protocol.Ticket(255)
		if w := protocol.Ticket(c.Window.Half() / 2 / protocol.Residues); c.Window != 0 {
			most = min(most, w) // no farther than the nodes let it go
		}
		top += protocol.Residues * (protocol.Ticket(c.ID[c.settleRounds%8]) % (most + 1))
	}
	c.raise(now, top)
}

// raise makes T "the highest ticket answered", which q nodes may hold already,
// as each of them keeps its own ticket for the claim, and sends settle(id, T)
// to all that do not.
func (c *Claim) raise(now protocol.Time, top protocol.Ticket) {
	c.phase, c.ticket, c.raised = Joining, top, true
	if c.Sets.Met(c.exact(now)) {
		c.phase = Waiting
	}
	for i := range c.peers {
		p := &c.peers[i]
		if p.behind = true; !(p.held && p.ticket == c.ticket) && !p.refused && c.Absent&(1<<i) == 0 {
			c.send(now, i, protocol.OpSettle)
			p.pushUnsure = false // the first request with this T
		}
	}
}

// admitted is rule 3: "V >= q, at least q views vote for it, and the weights
// of the counted claims plus its own fit".
func (c *Claim) admitted(now protocol.Time) bool {
	if !c.Voted(now) {
		return false
	}
	// With q votes, a claim that does not fit beside this one is in at most
	// V - q views, so it counts for at most N - q < q and is never counted. For
	// a mutex and for readers and writers that is all there is to check.
	return !c.Counting || !c.Rules.On(protocol.RuleCounting) || c.fits(now)
}

// wait is rule 4.
func (c *Claim) wait(now protocol.Time) {
	if c.admitted(now) {
		c.admittedCapacity = c.capacity(now)
		c.phase, c.giveUpAt = Holding, 0
		c.deadline = c.validUntil(now)
		return
	}
	var known, alive, aliveExact, votes, open uint32
	asked := 0
	top := c.ticket
	for i := range c.peers {
		p := &c.peers[i]
		if p.pendingSince != 0 {
			asked++
		}
		if c.running(p, now) {
			known |= 1 << i
			if p.failures < 2 && !c.barred(p) {
				alive |= 1 << i
				top = max(top, p.ticket)
			}
		}
		if c.usable(p, now) && p.failures < 2 && !c.barred(p) {
			aliveExact |= 1 << i
		}
		switch {
		case c.usable(p, now) && p.vote:
			votes |= 1 << i
		case p.neverSent() || c.awaited(p) || p.held && p.ticket < c.ticket && p.failures == 0:
			open |= 1 << i
		}
	}
	switch {
	case c.Try && (c.outvoted(now, votes, open) || c.countPause > 0 && asked == 0):
		c.End(now, Busy)
		return
	case !c.Sets.Met(known): // its leases have lapsed: it starts again, and a try gives up
		c.End(now, Expired)
		return
	case !c.Try && !c.Sets.Met(aliveExact) && c.Sets.Met(alive) && top > c.ticket && c.Rules.On(protocol.RuleRaise):
		// "A waiter whose exact nodes die may raise T and settle again." So may
		// one where another client's key bars all claims: such a node gives no
		// vote.
		c.began = now
		c.follow(now, top)
		return
	}
	c.count(now, votes)
}

// outvoted decides when a try gives up (rule 4). As soon as the votes still to
// come cannot make it q, other claims are ahead on a majority. A holder is
// ahead for as long as it holds. Tries that start at the same moment are ahead
// of each other, each on some nodes, until all of them are settled; then the
// lowest ticket has every vote. So a try that any node has voted for stays for
// as long as that settling may take.
// Invariant: of tries that meet only each other, one is admitted. The first
// claim on a node has that node's vote, so at least one try stays, and each try
// that leaves makes the others' way shorter.
func (c *Claim) outvoted(now protocol.Time, votes, open uint32) bool {
	if c.Sets.Met(votes | open) {
		if c.giveUpAt > 0 && now >= c.giveUpAt {
			c.giveUpAt = overdue
		}
		return false
	}
	if !c.votedOnce || !c.Rules.On(protocol.RuleStay) {
		return true
	}
	if c.giveUpAt == 0 {
		// The time so far is a measure of this client's round trips. The rest
		// depends on the id: two tries that give up at the same moment make way
		// for neither.
		stay := 2 * max(now.Sub(c.began), time.Millisecond/2)
		c.giveUpAt = now.Add(min(stay+stay*time.Duration(c.ID[2])/256, c.NodeTimeout))
	}
	return now >= c.giveUpAt
}

// overdue is a time to give up that has passed while an answer was still to
// come.
const overdue protocol.Time = 1

// hinted is when enough nodes may have come round to make q votes: each node
// says when the leases that are ahead of the claim end there.
func (c *Claim) hinted() protocol.Time {
	if !c.Rules.On(protocol.RuleHint) {
		return protocol.Never
	}
	at, votes := protocol.Time(0), uint32(0)
	for i := range c.peers {
		if p := &c.peers[i]; p.held && p.vote {
			votes |= 1 << i
		}
	}
	if c.Sets.Met(votes) {
		return protocol.Never
	}
	for _, set := range c.Sets.Sets() {
		if set == 0 {
			continue
		}
		need := protocol.NeedOf(set) - bits.OnesCount32(set&votes)
		var buf [9]protocol.Time
		hints := buf[:0]
		for i := range c.peers {
			if p := &c.peers[i]; set&(1<<i) != 0 && p.held && !p.vote && p.pendingSince == 0 && p.hinted {
				hints = append(hints, p.askAt)
			}
		}
		switch {
		case need <= 0:
		case len(hints) < need:
			return protocol.Never
		default:
			slices.Sort(hints)
			at = max(at, hints[need-1])
		}
	}
	return at
}

// leasesEnd is when the waiter's leases will have ended on too many nodes. Its
// place in the queue is gone then, and it starts again rather than wait for a
// turn that cannot come.
func (c *Claim) leasesEnd() protocol.Time {
	return c.quorumDeadline(func(p *peer) bool { return p.held })
}

// holdOn recomputes the deadline after each event, because an answer may take a
// vote away as well as prolong a lease.
func (c *Claim) holdOn(now protocol.Time) {
	was := c.deadline
	c.saveAdmitted(now)
	c.deadline = max(c.validUntil(now), c.giveUpAt)
	if now >= c.deadline && c.Rules.On(protocol.RuleFinal) {
		c.deadline = min(was, now) // it was held until then
		c.End(now, Lost)
	}
}

// validUntil is rule 5's deadline. Leases only end as time passes: see above.
func (c *Claim) validUntil(now protocol.Time) protocol.Time {
	if !c.Rules.On(protocol.RuleRecheck) || !c.Rules.On(protocol.RuleLease) {
		return c.quorumDeadline(func(p *peer) bool { return p.held })
	}
	if !c.Counting {
		return c.quorumDeadline(func(p *peer) bool { return p.vote && c.usable(p, now) })
	}
	ends := make([]protocol.Time, 0, len(c.peers))
	for i := range c.peers {
		if p := &c.peers[i]; c.usable(p, now) {
			ends = append(ends, c.leaseEnds(p))
		}
	}
	slices.Sort(ends)
	for _, t := range append([]protocol.Time{now}, ends...) {
		if !c.admitted(t) {
			return t
		}
	}
	return now
}
