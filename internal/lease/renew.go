package lease

import (
	"github.com/quorate/quorate/internal/protocol"
	"time"
)

// This file owns rule 6 and all that is sent without being asked for: renewals,
// second tries, and the settling of nodes that are below T or have lost the
// claim.
// Invariant: sendDue sends nothing to a node at which a request of the claim is
// unanswered, so a slow node is never flooded.

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
// works while no node can be reached.
func (c *Claim) StopRenewal() { c.noRenewal = true }

func (c *Claim) Muted() bool { return c.noRenewal }

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

// interval is ttl/3, less up to a tenth so that claims do not all beat in step.
func (c *Claim) interval() time.Duration {
	third := c.TTL / 3
	return third - third*time.Duration(c.ID[1])/2560
}

// sendDue sends what is due (rule 6), hinted questions included.
func (c *Claim) sendDue(now protocol.Time) {
	if c.phase == Holding && c.noRenewal {
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
