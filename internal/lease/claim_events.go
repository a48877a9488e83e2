package lease

import (
	"time"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// The events of a claim: it starts (rule 1), hears from its nodes (rule 8 and
// evictions), is moved to other nodes, and is left (rule 7). The nodes'
// messages go into its views, and advance.go draws the conclusions.

// Start sends join(id, T0) to all nodes at once (rule 1), except to the nodes
// in later, a bit for each. Those are asked after a while, or as soon as the
// others cannot make q votes alone.
func (c *Claim) Start(now protocol.Time, t0 protocol.Ticket, later uint32, after time.Duration) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	c.State.ticket, c.State.began, c.countAt = t0, now, protocol.Never
	c.beatAt = c.State.nextBeat(now)
	for i := range c.State.peers {
		if c.State.Absent&(1<<i) != 0 {
			continue
		}
		if later&(1<<i) != 0 {
			c.State.peers[i].askAt = now.Add(after) //mutant:RuleRest=protocol.Never
			continue
		}
		c.send(now, i, protocol.OpJoin)
	}
}

func (c *Claim) Tick(now protocol.Time) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	c.expire(now)
	if !c.State.phase.Final() {
		c.advance(now)
	}
}

// Sending records that r, which has waited at this client for room at its node, is
// sent now. It returns r with Sent set to now: a lease counted from before the
// wait would be shorter than necessary. A join gets the claim's present ticket,
// because Client.Sending may just have given the attempt a new T0.
// Invariant: pendingSince equals the Sent of the newest request. Answer and Fail
// recognize its answer by that.
func (c *Claim) Sending(now protocol.Time, r protocol.Request) protocol.Request {
	p := &c.State.peers[r.Node]
	p.pendingSince, p.askAt, p.hinted = now, protocol.Never, false
	if r.Sent = now; r.Op == protocol.OpJoin {
		r.Ticket = c.State.ticket
	}
	return r
}

// Answer takes in the answer of a node to r. If r is merged, the claim wanted
// to repeat r in the meantime and the repetition was not sent, so the answer is
// the answer to both. It returns what the clocks say against the answer.
func (c *Claim) Answer(now protocol.Time, r protocol.Request, a protocol.Answer) (d Doubt) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	d = c.State.doubts(r, a)
	c.expire(now)
	p := &c.State.peers[r.Node]
	if p.pendingSince == r.Sent || r.Merged {
		p.pendingSince = 0
	}
	if c.State.phase.Final() || r.Op == protocol.OpLeave || r.Sent < p.ackSent {
		return d // an answer that a newer one has overtaken says nothing new
	}
	if d == DoubtAhead || a.Status == protocol.OK && !c.State.credible(now, p, a, d == DoubtOld) {
		p.rejectAnswer(&c.State, now, r, a)
	} else {
		p.take(&c.State, now, r, a)
	}
	c.advance(now)
	return d
}

func (c *Claim) Push(now protocol.Time, node int, m protocol.Push) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	c.expire(now)
	if c.State.phase.Final() || m.ID != c.State.ID {
		return
	}
	p := &c.State.peers[node]
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
	if !p.takeVote(&c.State, m) {
		// Pushes come on a connection of their own: this one may have overtaken
		// the answer that tells of its ticket. Tickets at a node only rise.
		early := &p.extra().earlyPush
		if m.Ticket > early.Ticket || m.Incarnation != early.Incarnation { //mutant:RuleStash
			p.mutableExtra().earlyPush = m
		}
		return
	}
	if p.askAgain && p.pendingSince == 0 && !p.refused {
		p.askAgain = false
		p.ask(now)
	}
	if c.advance(now); c.State.phase == Holding {
		// Rule 8: the claim is admitted at once. Its lease is not new, but no
		// older than the time between two beats of a waiter, unless beats were
		// lost.
		if c.State.deadline.Sub(now) < c.State.TTL/2 {
			c.beatAt = now
			c.advance(now)
		}
	}
}

// evict records that, according to a node, an operator is evicting the holder.
// This counts only for the view that it belongs to, and only until the node's
// next answer, so an interrupted eviction leaves nothing behind.
// Invariant: a hold ends only if a quorum says so, so no single node can end
// it.
func (c *Claim) evict(now protocol.Time, p *peer, m protocol.Push) {
	if c.State.phase != Holding || m.Ticket != p.ticket || m.Incarnation != p.incarnation {
		return
	}
	p.evicts = true
	words := c.State.where(func(p *peer) bool { return p.evicts && p.usable(&c.State, now) })
	if c.State.Sets.Met(words) { //mutant:RuleEvict=true
		c.State.evicted, c.State.deadline = true, now // it was held until now
		c.End(now, Lost)
	}
}

// Fail records that r will not be answered. permanent says that the node
// refuses permanently.
func (c *Claim) Fail(now protocol.Time, r protocol.Request, permanent bool) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	c.expire(now)
	p := &c.State.peers[r.Node]
	if c.State.phase.Final() || r.Op == protocol.OpLeave || p.pendingSince != r.Sent && !r.Merged {
		return
	}
	p.refused = permanent
	p.noteSilence(&c.State, now)
	c.advance(now)
}

// Up records that the connection to a node is back. The node is asked at once.
func (c *Claim) Up(now protocol.Time, node int) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	// The claim may not count on the node yet: see Regroup.
	if c.expire(now); c.State.phase.Final() || node >= len(c.State.peers) {
		return
	}
	p := &c.State.peers[node]
	if p.pendingSince == 0 {
		p.refused = false // the reason may have ended with the connection
	}
	p.ask(now) // a push may be lost even if it was sent after the unanswered request was executed
	c.advance(now)
}

// Down records that the connection to a node has ended. Until the node answers
// again it counts as silent, so waiters that were settled there settle again on
// the remaining nodes (rule 4).
func (c *Claim) Down(now protocol.Time, node int) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	if c.expire(now); c.State.phase.Final() || node >= len(c.State.peers) {
		return
	}
	p := &c.State.peers[node]
	if p.neverSent() { //mutant:RuleDown=true
		return
	}
	p.failures = max(p.failures, 2)
	c.advance(now)
}

// MarkSlow records that a node does not answer other requests either: the claim
// asks it like the others, but does not wait for it.
func (c *Claim) MarkSlow(now protocol.Time, node int) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	c.expire(now)
	if p := &c.State.peers[node]; !c.State.phase.Final() && p.pendingSince != 0 {
		p.noteSilence(&c.State, now)
		c.advance(now)
	}
}

// ShortenLeases records that the leases of the given nodes, a bit for each, end
// earlier than the claim assumes, by the given time, because clocks disagree:
// see nodeset.Clocks.
// Invariant: the deadline that a holder keeps while nodes are exchanged moves
// too. It depends on leases whose nodes may have forgotten the claim since.
func (c *Claim) ShortenLeases(now protocol.Time, nodes uint32, by time.Duration) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	if c.expire(now); c.State.phase.Final() {
		return
	}
	for i := range c.State.peers {
		if p := &c.State.peers[i]; nodes&(1<<i) != 0 && p.held {
			p.mutableExtra().leaseEnds = p.leaseEnds(&c.State).Add(-by)
		}
	}
	if c.State.phase == Holding && c.giveUpAt > 0 { //mutant:RuleKeepEarly
		c.giveUpAt = max(c.giveUpAt.Add(-by), overdue)
	}
	c.advance(now)
}

// Regroup makes the claim use the nodes of g, by the rules 14 to 17 of a change
// (docs/internals/protocol.md). The claim keeps its ticket and its views: each
// view describes the queue of its node, whatever set the clients of that node
// use.
func (c *Claim) Regroup(now protocol.Time, g protocol.Group) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	if c.expire(now); c.State.phase.Final() {
		return
	}
	if c.State.Succession { //mutant:RuleSetSuccessor
		c.End(now, Lost) // its register belonged to the previous configuration
		return
	}
	if g.LongestTTL > 0 && c.State.TTL > g.LongestTTL { //mutant:RuleSetTTL
		c.End(now, Lost) // the set's guard time gets shorter, and will not cover its leases
		return
	}
	c.State.Sets, c.State.Absent = g.Sets, g.Absent
	for c.State.Nodes = uint8(max(int(c.State.Nodes), g.Nodes)); len(c.State.peers) < int(c.State.Nodes); {
		c.State.peers = append(c.State.peers, peer{})
	}
	c.State.forgetReassigned(now, g.Reassigned)
	if g.RestartJoining && c.State.phase == Joining && !c.State.NotStarted() { //mutant:RuleNarrow
		c.End(now, Expired)
		return
	}
	if c.State.phase == Holding { //mutant:RuleKeepDeadline
		c.giveUpAt = c.State.deadline
	}
	if c.State.phase != Joining {
		c.State.raised = true // from here on requests ask for this ticket
		for i := range c.State.peers {
			if p := &c.State.peers[i]; !p.held && !p.refused && g.Absent&(1<<i) == 0 {
				p.ask(now)
			}
		}
	}
	if c.State.phase == Waiting && !c.State.Sets.Met(c.State.exact(now)) { //mutant:RuleSettleNext
		c.State.phase, c.State.began = Joining, now
	}
	c.advance(now)
}

// Renew asks every node for a new lease now, even if renewal has been stopped
// or an older request is unanswered: the lease that answers the older request
// ends earlier.
func (c *Claim) Renew(now protocol.Time) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	if c.expire(now); c.State.phase != Holding {
		return
	}
	c.beatAt = c.State.nextBeat(now)
	for i := range c.State.peers {
		switch p := &c.State.peers[i]; {
		case p.refused || c.State.Absent&(1<<i) != 0:
		case p.held && p.ticket >= c.State.ticket:
			c.send(now, i, protocol.OpBeat)
		default:
			c.send(now, i, protocol.OpSettle)
		}
	}
}

// Shrink makes an admitted claim lighter: a writer becomes a reader, or permits
// of a semaphore are given back. Every node is settled again with the new
// weight. If the claim is not renewed its deadline stays, see leaseBrought.
func (c *Claim) Shrink(now protocol.Time, weight uint64) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	if c.expire(now); c.State.phase != Holding || weight >= c.State.Weight {
		return
	}
	c.State.Weight, c.State.shrunkAt = weight, now
	for i := range c.State.peers {
		c.State.peers[i].mutableExtra().shrinkPending = true
	}
	c.advance(now)
}

// Leave withdraws the claim from all nodes (rule 7).
func (c *Claim) Leave(now protocol.Time) {
	if invariant.On {
		defer before(c).check(c, now)
	}
	if c.expire(now); !c.State.phase.Final() {
		c.State.deadline = min(c.State.deadline, now) // it was held until now
		c.End(now, Left)
	}
}
