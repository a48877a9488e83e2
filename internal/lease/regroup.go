package lease

import "github.com/quorate/quorate/internal/protocol"

// This file owns what becomes of claims when another configuration begins to
// count.

// Regroup has the claim count on other nodes. It keeps its ticket.
// Invariant: views stay, since each tells of the queue of its node, whatever
// the node's clients count on. A holder keeps the deadline that it had: no
// claim is admitted by the new nodes alone until it has passed, see Exchange.
// Invariant: a waiter goes on once it is settled at a quorum of the new nodes,
// too. They insert it at its ticket.
// Invariant: an attempt that is not settled starts again when the new set
// counts alone. It may have begun before a claim of the set of before, of which
// the new nodes know nothing, and it may have a lower ticket.
func (c *Claim) Regroup(now protocol.Time, g protocol.Group) {
	if c.expire(now); c.phase.Final() {
		return
	}
	if c.Succession && c.Rules.On(protocol.RuleSetSuccessor) { // its register was that of the configuration of before
		c.End(now, Lost)
		return
	}
	if g.LongestTTL > 0 && c.TTL > g.LongestTTL && c.Rules.On(protocol.RuleSetTTL) {
		c.End(now, Lost) // the set's guard time gets shorter, and will not cover its leases
		return
	}
	c.Sets, c.Absent = g.Sets, g.Absent
	for c.Nodes = uint8(max(int(c.Nodes), g.Nodes)); len(c.peers) < int(c.Nodes); {
		c.peers = append(c.peers, peer{})
	}
	c.forgetOthers(now, g.Others)
	if g.RestartJoining && c.phase == Joining && !c.Postponed() && c.Rules.On(protocol.RuleNarrow) {
		c.End(now, Expired)
		return
	}
	if c.phase == Holding && c.Rules.On(protocol.RuleKeepDeadline) {
		c.giveUpAt = c.deadline
	}
	if c.phase != Joining {
		c.raised = true // what is asked for from here on is this ticket
		for i := range c.peers {
			if p := &c.peers[i]; !p.held && !p.refused && g.Absent&(1<<i) == 0 {
				p.ask(now)
			}
		}
	}
	if c.phase == Waiting && !c.Sets.Met(c.exact(now)) && c.Rules.On(protocol.RuleSettleNext) {
		c.phase, c.began = Joining, now
	}
	c.advance(now)
}

// forgetOthers has what was said under a number end when the number stands for
// another member.
// Invariant: what a claim knows of a number was said by the member that the
// number stands for. See RuleSetNumber.
func (c *Claim) forgetOthers(now protocol.Time, others uint32) {
	if !c.Rules.On(protocol.RuleSetNumber) {
		return
	}
	for i := range c.peers {
		if p := &c.peers[i]; others&(1<<i) != 0 { // what it has still to answer is from before, too
			*p = peer{behind: p.behind, ackSent: now, pendingSince: p.pendingSince, askAt: now}
		}
	}
}
