package lease

import "github.com/quorate/quorate/internal/protocol"

// This file owns what becomes of claims and operations when another
// configuration begins to count.

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

// Regroup has the operation count on other nodes. What nodes have answered
// stays.
func (q *RegisterOp) Regroup(now protocol.Time, g protocol.Group) {
	if q.Succession && q.Rules.On(protocol.RuleSetSuccessor) { // its register was that of the configuration of before
		q.Supersede()
		return
	}
	q.Sets, q.Absent = g.Sets, g.Absent
	if g.Window > 0 {
		q.Fresh = min(q.Fresh, g.Fresh())
	}
	for q.Nodes = max(q.Nodes, g.Nodes); len(q.peers) < q.Nodes; {
		q.peers = append(q.peers, registerPeer{})
	}
	q.forgetOthers(now, g.Others)
	for i := range q.peers {
		if p := &q.peers[i]; q.outcome == Asking && q.Repair == 0 && !p.answered && p.pendingSince == 0 && p.askAt == 0 {
			p.askAt = now
		}
	}
	q.Tick(now)
}

// Supersede ends an operation whose register is not asked any more.
func (q *RegisterOp) Supersede() {
	if q.outcome == Asking {
		q.outcome = Superseded
	}
}

// forgetOthers is that of a claim: what these numbers said is as if they had
// not been asked.
func (q *RegisterOp) forgetOthers(now protocol.Time, others uint32) {
	if others == 0 || q.outcome != Asking || !q.Rules.On(protocol.RuleSetNumber) {
		return
	}
	q.newest, q.promise = protocol.Stored{}, protocol.Version{}
	for i := range q.peers {
		p := &q.peers[i]
		if others&(1<<i) == 0 {
			q.collect(p)
			continue
		}
		asked := p.answered || p.pendingSince != 0 || p.askAt != 0
		*p = registerPeer{from: now, pendingSince: p.pendingSince}
		if asked {
			p.askAt = now.Add(1)
		}
	}
}
