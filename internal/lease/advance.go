package lease

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a claim does without an answer: it starts (rule 1), time
// passes, and it sends what is due: renewals (rule 6), second tries, and the
// settling of nodes that are below T or have lost the claim.
// Invariant: advance runs after each event, so a claim's phase, deadline and
// Wake are always those of what it knows.
// Invariant: sendDue sends nothing to a node at which a request of the claim is
// unanswered, so a slow node is never flooded.

// Start sends join(id, T0) to all nodes at once (rule 1), but for those that
// are in later, a bit for each. These are asked after a while, or as soon as
// the others cannot make q votes by themselves.
func (c *Claim) Start(now protocol.Time, t0 protocol.Ticket, later uint32, after time.Duration) {
	c.ticket, c.began, c.countAt = t0, now, protocol.Never
	c.beatAt = c.nextBeat(now)
	for i := range c.peers {
		if c.Absent&(1<<i) != 0 {
			continue
		}
		if later&(1<<i) != 0 {
			if c.peers[i].askAt = now.Add(after); !c.Rules.On(protocol.RuleRest) {
				c.peers[i].askAt = protocol.Never
			}
			continue
		}
		c.send(now, i, protocol.OpJoin)
	}
}

func (c *Claim) Tick(now protocol.Time) {
	c.expire(now)
	if !c.phase.Final() {
		c.advance(now)
	}
}

// advance draws the conclusions of what is known now. The order of the phases
// is that of the rules, so one event may take a claim from Joining to Holding.
// sendDue comes last: it must not renew a claim that has just been lost, nor
// ask for a vote that has just been counted.
func (c *Claim) advance(now protocol.Time) {
	refusals := uint32(0)
	for i := range c.peers {
		p := &c.peers[i]
		if p.pendingSince != 0 && now >= p.pendingSince.Add(c.NodeTimeout) {
			c.noteSilence(now, p)
		}
		if p.refused {
			refusals |= 1 << i
		}
	}
	if c.phase != Holding && c.Sets.Blocked(refusals) {
		c.End(now, Rejected)
		return
	}
	if c.phase == Joining {
		c.settle(now)
	}
	if c.phase == Waiting && c.tooHeavy(now) {
		c.End(now, TooHeavy)
		return
	}
	if c.phase == Waiting {
		c.wait(now)
	}
	if c.phase == Holding {
		c.holdOn(now)
	}
	if !c.phase.Final() {
		c.sendDue(now)
	}
}

func (c *Claim) noteSilence(now protocol.Time, p *peer) {
	p.pendingSince, p.behind, p.askAt, p.hinted = 0, false, protocol.Never, false
	p.failures = min(p.failures, mostFailures-1) + 1
	if !p.refused && (!c.Try || c.phase == Holding) { // a try asks once
		p.askAt = now.Add(min(c.NodeTimeout<<p.failures/8, c.interval()))
	}
}

// Wake returns when the claim wants a Tick.
// Invariant: what depends on time alone has its moment here: a deadline, the
// end of a try, a silent node.
func (c *Claim) Wake() protocol.Time {
	if c.phase.Final() {
		return protocol.Never
	}
	w := c.beatAt
	switch c.phase {
	case Joining:
		if c.Rules.On(protocol.RuleAbandon) {
			w = min(w, c.began.Add(c.TTL))
		}
	case Waiting:
		w = min(w, c.hinted(), c.countAt)
		if c.giveUpAt > overdue {
			w = min(w, c.giveUpAt)
		}
		if l := c.leasesEnd(); l > 0 && c.Rules.On(protocol.RuleLease) {
			w = min(w, l)
		}
	case Holding:
		if c.noRenewal {
			return c.wakeUnrenewed()
		}
		if c.Rules.On(protocol.RuleFinal) {
			w = min(w, c.deadline)
		}
	}
	for i := range c.peers {
		p := &c.peers[i]
		if p.pendingSince != 0 {
			w = min(w, p.pendingSince.Add(c.NodeTimeout))
		} else if p.askAt != 0 && !p.hinted && c.Absent&(1<<i) == 0 {
			w = min(w, p.askAt)
		}
	}
	return w
}

// wakeUnrenewed is Wake of a hold that is not renewed.
func (c *Claim) wakeUnrenewed() protocol.Time {
	w := c.deadline
	for i := range c.peers {
		switch p := &c.peers[i]; {
		case !c.owesWeight(i):
		case p.pendingSince != 0:
			w = min(w, p.pendingSince.Add(c.NodeTimeout))
		case p.askAt != 0:
			w = min(w, p.askAt)
		}
	}
	return w
}

// Renew asks every node for a new lease now, also when renewal has been
// stopped, and also where an older request is still out: the lease that answers
// that one ends earlier.
func (c *Claim) Renew(now protocol.Time) {
	if c.expire(now); c.phase != Holding {
		return
	}
	c.beatAt = c.nextBeat(now)
	for i := range c.peers {
		switch p := &c.peers[i]; {
		case p.refused || c.Absent&(1<<i) != 0:
		case p.held && p.ticket >= c.ticket:
			c.send(now, i, protocol.OpBeat)
		default:
			c.send(now, i, protocol.OpSettle)
		}
	}
}

// StopRenewal lets the claim end with the leases it has. Nothing is sent, so it
// works while no node can be reached. Only Shrink and Renew still send.
func (c *Claim) StopRenewal() { c.noRenewal = true }

func (c *Claim) Muted() bool { return c.noRenewal }

// Shrink makes an admitted claim lighter: a writer becomes a reader, a
// semaphore gets permits back. That frees capacity and takes none, so it is
// safe at any time; every node is settled again, with the new weight. Where the
// claim is not renewed its deadline stays, see leaseBrought.
func (c *Claim) Shrink(now protocol.Time, weight uint64) {
	if c.expire(now); c.phase != Holding || weight >= c.Weight {
		return
	}
	c.Weight, c.shrunkAt = weight, now
	for i := range c.peers {
		c.peers[i].mutableExtra().shrinkPending = true
	}
	c.advance(now)
}

// nextBeat is when to beat again. It falls on one of a few moments, and what
// falls on the same goes out together: to renew one of many claims costs less
// then.
func (c *Claim) nextBeat(now protocol.Time) protocol.Time {
	at := now.Add(c.interval())
	if step := protocol.Time(c.TTL / 256); step >= protocol.Time(time.Millisecond) {
		return at / step * step
	}
	// Nothing to be gained. And the exhaustive search, with a ttl of a few
	// units, takes states for one that differ in nothing but when they are.
	return at
}

// sendDue sends what is due (rule 6), hinted questions included.
func (c *Claim) sendDue(now protocol.Time) {
	if c.phase == Holding && c.noRenewal {
		c.sendWeight(now)
		return
	}
	due := now >= c.beatAt
	if due {
		c.beatAt = c.nextBeat(now)
		if c.Counting && c.phase == Holding {
			c.deepenLists(now)
		}
	}
	asking, rest := c.phase == Waiting && now >= c.hinted(), c.outOfVotes(now)
	for i := range c.peers {
		p := &c.peers[i]
		if p.pendingSince != 0 || p.refused && !due || c.Absent&(1<<i) != 0 {
			continue
		}
		again := p.askAt != 0 && !p.hinted && now >= p.askAt
		switch {
		case !p.held && (due || again || rest && p.neverSent()):
			if !c.raised && (c.phase == Joining || p.neverSent()) || !c.Rules.On(protocol.RuleSettleMissing) {
				c.send(now, i, protocol.OpJoin)
			} else {
				c.send(now, i, protocol.OpSettle)
			}
		case p.held && p.ticket < c.ticket && (c.phase == Joining || c.Rules.On(protocol.RuleSettleBelow)) && (p.failures == 0 || due || again):
			c.send(now, i, protocol.OpSettle)
		case p.held && p.extra().shrinkPending && (p.failures == 0 || due || again):
			c.send(now, i, protocol.OpSettle)
		case p.held && (due || again || asking && !p.vote):
			c.send(now, i, protocol.OpBeat)
		}
	}
}

// sendWeight is sendDue of a hold that is not renewed: what Shrink gives back
// is free all the same.
func (c *Claim) sendWeight(now protocol.Time) {
	for i := range c.peers {
		p := &c.peers[i]
		if again := p.askAt != 0 && now >= p.askAt; c.owesWeight(i) && p.pendingSince == 0 && (p.failures == 0 || again) {
			c.send(now, i, protocol.OpSettle)
		}
	}
}

// owesWeight reports whether a node is to learn the weight of Shrink from a
// hold that is not renewed.
func (c *Claim) owesWeight(node int) bool {
	p := &c.peers[node]
	return p.held && p.extra().shrinkPending && !p.refused && c.Absent&(1<<node) == 0
}

// outOfVotes has the deferred nodes asked early: those that have been asked
// cannot make q votes any more.
func (c *Claim) outOfVotes(now protocol.Time) bool {
	if c.phase == Holding || !c.Rules.On(protocol.RuleRest) {
		return false
	}
	votes := uint32(0)
	for i := range c.peers {
		if p := &c.peers[i]; p.pendingSince != 0 || p.vote && c.usable(p, now) {
			votes |= 1 << i
		}
	}
	return !c.Sets.Met(votes)
}
