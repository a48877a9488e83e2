package lease

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a node's answer, push or silence changes in the view of
// that node.
// Invariant: a view only gains what its node said in the same incarnation and
// at the same ticket, and an older answer never replaces a newer one.

// Answer takes a node's answer to r. If r is merged, the claim has wanted to
// repeat r meanwhile, and the repetition was not sent: the answer is the answer
// to both.
func (c *Claim) Answer(now protocol.Time, r protocol.Request, a protocol.Answer) {
	c.expire(now)
	p := &c.peers[r.Node]
	if p.pendingSince == r.Sent || r.Merged {
		p.pendingSince = 0
	}
	if c.phase.Final() || r.Op == protocol.OpLeave || r.Sent < p.ackSent {
		return // an answer that a newer one has overtaken says nothing new
	}
	if a.Status == protocol.Ahead || a.Status == protocol.OK && !c.credible(now, p, a) {
		c.rejectAnswer(now, p, r, a)
		c.advance(now)
		return
	}
	p.failures, p.refused = 0, false
	switch a.Status {
	case protocol.OK:
		c.acknowledge(now, p, r, a)
		p.askAt, p.hinted = protocol.Never, false
		switch {
		case p.askAgain && p.pendingSince == 0: // that answer will bring a hint of its own
			p.askAgain, p.askAt = false, now
		case a.Wait > 0:
			p.askAt, p.hinted = now.Add(a.Wait), true
		}
		p.waiters = a.Waiters
		if p.extra().shrinkPending && r.Op != protocol.OpBeat && r.Sent >= c.shrunkAt {
			p.extraOrNil.shrinkPending = false
		}
		if r.Op == protocol.OpSettle && r.Ticket == c.ticket {
			p.behind = false
		}
	case protocol.Missing: // the view is of a claim that is not there any more: back by rule 6
		*p = peer{ackSent: r.Sent, askAt: now, behind: p.behind}
	case protocol.Recovering: // lost its data: not before the guard time is over
		again := peer{ackSent: r.Sent, askAt: now.Add(max(a.Wait, time.Millisecond)), failures: 1}
		if c.phase == Holding && c.usable(p, now) && c.Rules.On(protocol.RuleOutlast) {
			// The guard time outlasts the lease that it has forgotten, so that
			// still keeps others out: a node that has come back is worth no
			// less to a holder than one that has not.
			again.held, again.ticket, again.incarnation, again.vote, again.pushUnsure = true, p.ticket, p.incarnation, p.vote, p.pushUnsure
			m := p.extra()
			again.extraOrNil = &peerExtra{lowerSet: m.lowerSet, admittedSet: m.admittedSet, limit: m.limit, limitAt: m.limitAt, leaseEnds: c.leaseEnds(p), shrinkPending: m.shrinkPending}
		}
		*p = again
	case protocol.Clash:
		*p = peer{ackSent: r.Sent, askAt: protocol.Never, refused: true}
	}
	c.advance(now)
}

// credible reports whether a node's answer that it holds the claim counts
// (ticketclock.go). A holder has its ticket, so only the others need to ask.
// The ticket must not be so far ahead that other nodes refuse it: one node
// whose clock is wrong, or that keeps a forged ticket, must not draw the claim
// after it. Where a view begins, the ticket must not be old. The node may have
// forgotten a later one that was admitted.
func (c *Claim) credible(now protocol.Time, p *peer, a protocol.Answer) bool {
	if c.Window == 0 || c.phase == Holding {
		return true
	}
	if int64(a.Ticket) > int64(c.ticket)+c.Window.Half()+int64(now.Sub(c.began)/time.Microsecond) && c.Rules.On(protocol.RuleCeiling) {
		return false
	}
	return !c.Window.Old(a.Ticket, a.Clock) || p.incarnation == a.Incarnation && c.running(p, now) ||
		c.Sets.Attested(c.exact(now)) || !c.Rules.On(protocol.RuleOld)
}

// rejectAnswer takes an answer that does not count because the ticket and the
// node's clock are too far apart: as if there had been none, but for the time
// after which the node may give the ticket.
func (c *Claim) rejectAnswer(now protocol.Time, p *peer, r protocol.Request, a protocol.Answer) {
	failures := min(p.failures, mostFailures-1)
	*p = peer{ackSent: r.Sent, pendingSince: p.pendingSince, askAt: protocol.Never, failures: failures + 1}
	if c.Try && c.phase != Holding { // a try asks once
		return
	}
	// Many may be refused at one moment, and must not all come back at one.
	pause := c.NodeTimeout << p.failures / 8
	pause += pause * time.Duration(c.ID[3]) / 256
	p.askAt = now.Add(min(max(a.Wait, pause), c.interval()))
}

// acknowledge takes the lease and the view that came with an answer. Within one
// incarnation and at one ticket a view only ever loses claims, so a vote stays
// given and the newest lists are the smallest, unless the node may have stored
// the claim twice (distrustPushes). An answer at another ticket or of another
// incarnation starts a new view.
func (c *Claim) acknowledge(now protocol.Time, p *peer, r protocol.Request, a protocol.Answer) {
	same := p.held && p.ticket == a.Ticket && (p.incarnation == a.Incarnation || !c.Rules.On(protocol.RuleIncarnation))
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
	ends := c.leaseBrought(p, r, same)
	p.held, p.ticket, p.incarnation, p.ackSent, p.evicts = true, a.Ticket, a.Incarnation, r.Sent, false
	if ends != 0 || p.extraOrNil != nil {
		p.mutableExtra().leaseEnds = ends
	}
	if a.Foreign {
		c.distrustPushes(p)
	}
	pushedVote := p.vote && !p.pushUnsure && !a.Foreign && !a.Vote // by the push that voted
	p.vote = a.Vote || pushedVote
	if c.Counting && !pushedVote {
		c.takeLowerSet(p.mutableExtra(), r, a)
	}
	p.resized(a.Limit, a.LimitAt)
	c.votedOnce = c.votedOnce || p.vote
	if barred := a.Foreign || a.Barred; barred || p.extraOrNil != nil {
		p.mutableExtra().barred = barred
	}
	if early := p.extra().earlyPush; early.Vote && c.takeVote(p, early) {
		p.extraOrNil.earlyPush = protocol.Push{}
	}
}

// leaseBrought is when the lease ends that the answer to r has brought, 0 if as
// its ttl tells. The node gives a whole one to each settle, also to one that is
// for the weight of Shrink alone. Where the claim is not renewed such a one
// moves no deadline: the claim counts on no more than it did.
//
// Note: Here is an incorrect way: to settle with the rest of the lease for its
// ttl. The answer to an Extend that is still to come would promise more than
// the node then keeps.
func (c *Claim) leaseBrought(p *peer, r protocol.Request, same bool) protocol.Time {
	if c.phase != Holding || !c.noRenewal || r.Op != protocol.OpSettle || !p.held || c.shrunkAt == 0 {
		return 0
	}
	ends := min(c.deadline, c.leaseEnds(&peer{ackSent: r.Sent}))
	if same {
		ends = max(ends, c.leaseEnds(p))
	}
	return ends
}

func (c *Claim) Push(now protocol.Time, node int, m protocol.Push) {
	c.expire(now)
	if c.phase.Final() || m.ID != c.ID {
		return
	}
	p := &c.peers[node]
	if m.Ask {
		c.Up(now, node)
		return
	}
	if m.Evict {
		c.evict(now, p, m)
		return
	}
	if p.waiters = m.Waiters || !m.Vote; !m.Vote {
		return
	}
	if !c.takeVote(p, m) {
		// Pushes come on a connection of their own: this one may have overtaken
		// the answer that tells of its ticket. Tickets at a node only rise.
		early := &p.extra().earlyPush
		if c.Rules.On(protocol.RuleStash) && (m.Ticket > early.Ticket || m.Incarnation != early.Incarnation) {
			p.mutableExtra().earlyPush = m
		}
		return
	}
	if p.askAgain && p.pendingSince == 0 && !p.refused {
		p.askAgain = false
		p.ask(now)
	}
	if c.advance(now); c.phase == Holding {
		// Rule 8: in at once. The lease is an old one, but no older than a
		// waiter's beats are apart, unless some of them were lost.
		if c.deadline.Sub(now) < c.TTL/2 {
			c.beatAt = now
			c.advance(now)
		}
	}
}

// evict takes the word of a node that an operator ends the hold. It counts in
// the view that it belongs to, until the node's next answer: an eviction that
// was broken off leaves nothing behind.
// Invariant: fewer than a quorum's words end no hold, so no node alone does.
func (c *Claim) evict(now protocol.Time, p *peer, m protocol.Push) {
	if c.phase != Holding || m.Ticket != p.ticket || m.Incarnation != p.incarnation {
		return
	}
	p.evicts = true
	words := uint32(0)
	for i := range c.peers {
		if p := &c.peers[i]; p.evicts && c.usable(p, now) {
			words |= 1 << i
		}
	}
	if c.Sets.Met(words) || !c.Rules.On(protocol.RuleEvict) {
		c.evicted, c.deadline = true, now // it was held until now
		c.End(now, Lost)
	}
}

// takeVote turns p's view into a vote if the push belongs to it: same
// incarnation, same ticket. If the push may be older than the view the node is
// to be asked.
func (c *Claim) takeVote(p *peer, m protocol.Push) bool {
	if !p.held || (m.Ticket != p.ticket || m.Incarnation != p.incarnation) && c.Rules.On(protocol.RulePushView) {
		return false
	}
	switch {
	case p.vote:
	case p.pushUnsure:
		p.askAgain = true
	default:
		p.resized(m.Limit, m.LimitAt)
		p.vote, c.votedOnce = true, true
		if c.Counting {
			v := &p.mutableExtra().lowerSet
			if v.known, v.sum, v.digest, v.all = true, m.Sum, m.Digest, (totals{m.Sum, m.Digest}); m.Sum == 0 {
				v.list(nil, 0, totals{})
			}
		}
	}
	return true
}

// Fail takes a request that will not be answered, for good or for now.
func (c *Claim) Fail(now protocol.Time, r protocol.Request, forGood bool) {
	c.expire(now)
	p := &c.peers[r.Node]
	if c.phase.Final() || r.Op == protocol.OpLeave || p.pendingSince != r.Sent && !r.Merged {
		return
	}
	p.refused = forGood
	c.noteSilence(now, p)
	c.advance(now)
}

// Up says that a node's connection has come (back): ask it at once.
func (c *Claim) Up(now protocol.Time, node int) {
	if c.expire(now); c.phase.Final() || node >= len(c.peers) { // it may not count on the node yet: see Regroup
		return
	}
	p := &c.peers[node]
	if p.pendingSince == 0 {
		p.refused = false // what was for good may have ended with the connection
	}
	p.ask(now) // what was pushed after a request that is out had been executed may be lost, too
	c.advance(now)
}

// Down says that a node's connection is gone. Until the node answers again it
// counts as one that does not answer, so waiters that were settled there settle
// again on the nodes that are left (rule 4).
func (c *Claim) Down(now protocol.Time, node int) {
	if c.expire(now); c.phase.Final() || node >= len(c.peers) {
		return
	}
	p := &c.peers[node]
	if p.neverSent() || !c.Rules.On(protocol.RuleDown) {
		return
	}
	p.failures = max(p.failures, 2)
	c.advance(now)
}

// Suspect says that a node does not answer others either: it is asked like the
// others, and not waited for.
func (c *Claim) Suspect(now protocol.Time, node int) {
	c.expire(now)
	if p := &c.peers[node]; !c.phase.Final() && p.pendingSince != 0 {
		c.noteSilence(now, p)
		c.advance(now)
	}
}

// Early says that the leases that some nodes gave, a bit for each, end so much
// earlier than the claim takes them to: clocks disagree, see Clocks.
// Invariant: the deadline that a holder keeps while nodes are exchanged ends
// earlier, too. It rests on leases whose nodes may have forgotten the claim
// since.
func (c *Claim) Early(now protocol.Time, nodes uint32, by time.Duration) {
	if c.expire(now); c.phase.Final() {
		return
	}
	for i := range c.peers {
		if p := &c.peers[i]; nodes&(1<<i) != 0 && p.held {
			p.mutableExtra().leaseEnds = c.leaseEnds(p).Add(-by)
		}
	}
	if c.phase == Holding && c.giveUpAt > 0 && c.Rules.On(protocol.RuleKeepEarly) {
		c.giveUpAt = max(c.giveUpAt.Add(-by), overdue)
	}
	c.advance(now)
}
