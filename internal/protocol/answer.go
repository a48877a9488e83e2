package protocol

import "time"

// This file owns what a node's answer, push or silence changes in the view of that node.
//
// Invariant: a view only gains what its node said in the same incarnation and at the
// same ticket, and an older answer never replaces a newer one.

// Answer takes a node's answer to r. If r is merged, the claim has wanted to repeat r
// meanwhile, and the repetition was not sent: the answer is the answer to both.
func (c *Claim) Answer(now Time, r Request, a Answer) {
	c.expire(now)
	p := &c.peers[r.Node]
	if p.asked == r.Sent || r.Merged {
		p.asked = 0
	}
	if c.phase.Final() || r.Op == OpLeave || r.Sent < p.taken {
		return // an answer that a newer one has overtaken says nothing new
	}
	if a.Status == Ahead || a.Status == OK && !c.credible(now, p, a) {
		c.unfit(now, p, r, a)
		c.advance(now)
		return
	}
	if a.Status == OK && a.Late > 0 && c.Counting && c.phase != Holding {
		// Leases that ended early are missing in what it tells. It may be so for half a guard
		// time, so the claim asks less and less often, as it asks a node that is silent.
		p.refused = false
		c.silent(now, p)
		c.advance(now)
		return
	}
	p.failures, p.refused = 0, false
	switch a.Status {
	case OK:
		c.acknowledge(now, p, r, a)
		p.next, p.hinted = Never, false
		switch {
		case p.again && p.asked == 0: // that answer will bring a hint of its own
			p.again, p.next = false, now
		case a.Wait > 0:
			p.next, p.hinted = now.Add(a.Wait), true
		case a.Vote && p.heard().ripe > now:
			p.next, p.hinted = p.more.ripe, true
		}
		p.waiters = a.Waiters
		if p.heard().heavy && r.Op != OpBeat && r.Sent >= c.shrunk {
			p.more.heavy = false
		}
		if r.Op == OpSettle && r.Ticket == c.t {
			p.behind = false
		}
	case Missing: // the view is of a claim that is not there any more: back by rule 6
		*p = peer{taken: r.Sent, next: now, behind: p.behind}
	case Recovering: // lost its memory: not before the guard time is over
		again := peer{taken: r.Sent, next: now.Add(max(a.Wait, time.Millisecond)), failures: 1}
		if c.phase == Holding && c.usable(p, now) && c.Rules.on(RuleOutlast) {
			// The guard time outlasts the lease that it has forgotten, so that still
			// keeps others out: a node that has come back is worth no less to a holder
			// than one that has not.
			again.held, again.tkt, again.inc, again.vote, again.unsure = true, p.tkt, p.inc, p.vote, p.unsure
			m := p.heard()
			again.more = &more{content: m.content, was: m.was, limit: m.limit, limitAt: m.limitAt, until: c.until(p)}
		}
		*p = again
	case Clash:
		*p = peer{taken: r.Sent, next: Never, refused: true}
	}
	c.advance(now)
}

// credible reports whether a node's answer that it holds the claim counts
// (ticketclock.go). A holder has its ticket, so only the others need to ask.
//
// The ticket must not be so far ahead that other nodes refuse it: one node whose
// clock is wrong, or that keeps a forged ticket, must not draw the claim after it.
//
// Where a view begins, the ticket must not be old. The node may have forgotten a
// later one that was admitted. It has not if it held the claim until now. And a
// claim that is on q nodes exactly is in the view of every later one at some node
// that has not forgotten it.
func (c *Claim) credible(now Time, p *peer, a Answer) bool {
	if c.Window == 0 || c.phase == Holding {
		return true
	}
	if int64(a.Ticket) > int64(c.t)+c.Window.half()+int64(now.Sub(c.began)/time.Microsecond) && c.Rules.on(RuleCeiling) {
		return false
	}
	return !c.Window.Old(a.Ticket, a.Clock) || p.inc == a.Incarnation && c.running(p, now) ||
		c.exact(now) >= c.Quorum() || !c.Rules.on(RuleOld)
}

// unfit takes an answer that does not count because the ticket and the node's
// clock are too far apart: as if there had been none, but for the time after
// which the node may give the ticket.
func (c *Claim) unfit(now Time, p *peer, r Request, a Answer) {
	failures := min(p.failures, mostFailures-1)
	*p = peer{taken: r.Sent, asked: p.asked, next: Never, failures: failures + 1}
	if c.Try && c.phase != Holding { // a try asks once
		return
	}
	// Many may be refused at one moment, and must not all come back at one.
	pause := c.NodeTimeout << p.failures / 8
	pause += pause * time.Duration(c.ID[3]) / 256
	p.next = now.Add(min(max(a.Wait, pause), c.interval()))
}

// acknowledge takes the lease and the view that came with an answer.
//
// Within one incarnation and at one ticket a view only ever loses claims, so a
// vote stays given and the newest lists are the smallest, unless the node may have
// stored the claim twice (doubt). An answer at another ticket or of another
// incarnation starts a new view.
func (c *Claim) acknowledge(now Time, p *peer, r Request, a Answer) {
	same := p.held && p.tkt == a.Ticket && (p.inc == a.Incarnation || !c.Rules.on(RuleIncarnation))
	if !same {
		p.vote = false
	}
	if p.more != nil {
		if !same {
			p.more.content, p.more.was = content{}, content{}
		}
		if p.inc != a.Incarnation {
			p.more.limit, p.more.limitAt = 0, 0
		}
		if !same || !a.Vote || !c.running(p, now) { // with its lease a vote may have ended, and a later one begun
			p.more.ripe = 0
		}
	}
	p.held, p.tkt, p.inc, p.taken = true, a.Ticket, a.Incarnation, r.Sent
	if p.more != nil {
		p.more.until = 0
	}
	if a.Foreign {
		c.doubt(p)
	}
	overtaken := p.vote && !p.unsure && !a.Foreign && !a.Vote // by the push that voted
	p.vote = a.Vote && c.ripe(now, p, a.Late) || overtaken
	if c.Counting && !overtaken {
		c.content(p.own(), r, a)
	}
	p.resized(a.Limit, a.LimitAt)
	c.first = c.first || p.vote
	if barred := a.Foreign || a.Barred; barred || p.more != nil {
		p.own().barred = barred
	}
	if early := p.heard().early; early.Vote && c.admitHere(p, early) {
		p.more.early = Push{}
	}
}

// doubt: a node may have taken its vote back, within one incarnation and at one
// ticket. Then only answers say whether it votes. A push is a reason to ask.
//
// A node that stores the claim once, and keeps it, keeps its vote. It takes the vote
// back in two cases only. (a) The lease ends, another client takes the redlock key,
// and a settle stores the claim again at the same ticket. That takes a second
// request that may store the claim at this ticket. (b) The redlock key is another
// client's though the lease has not ended. The answer to the claim's next request
// says so.
//
// Without the rule: the push of a vote is under way for longer than the lease. When
// it arrives the claim is back without a vote, at the same ticket and in the same
// incarnation, and another Redlock client holds with this node's key.
func (c *Claim) doubt(p *peer) { p.unsure = c.Rules.on(RulePushOnce) }

// ripe reports whether a vote that a node gives now counts now. Where its clock
// may have jumped ahead it counts when the clock that the node had before would
// show the same: no lease that the jump has ended early still runs by then.
func (c *Claim) ripe(now Time, p *peer, late time.Duration) bool {
	if late == 0 || p.vote {
		return true
	}
	m := p.own()
	if m.ripe == 0 {
		m.ripe = now.Add(late)
	}
	return now >= m.ripe
}

// Push takes what a node said unasked.
func (c *Claim) Push(now Time, node int, m Push) {
	c.expire(now)
	if c.phase.Final() || m.ID != c.ID {
		return
	}
	p := &c.peers[node]
	if m.Ask {
		c.Up(now, node)
		return
	}
	if p.waiters = m.Waiters || !m.Vote; !m.Vote {
		return
	}
	if m.Late > 0 && !p.vote { // the answer to a question will tell
		switch mine := p.held && !p.refused && m.Ticket == p.tkt && m.Incarnation == p.inc; {
		case mine && p.unsure: // it may tell of an earlier vote: see doubt
			p.ask(now)
			c.advance(now)
		case mine && !c.ripe(now, p, m.Late) && p.asked == 0:
			p.next, p.hinted = p.more.ripe, true
		}
		return
	}
	if !c.admitHere(p, m) {
		// Pushes come on a connection of their own: this one may have overtaken the
		// answer that tells of its ticket. Tickets at a node only rise.
		early := &p.heard().early
		if c.Rules.on(RuleStash) && (m.Ticket > early.Ticket || m.Incarnation != early.Incarnation) {
			p.own().early = m
		}
		return
	}
	if p.again && p.asked == 0 && !p.refused {
		p.again = false
		p.ask(now)
	}
	if c.advance(now); c.phase == Holding {
		// Rule 8: in at once. The lease is an old one, but no older than a waiter's
		// beats are apart, unless some of them were lost.
		if c.deadline.Sub(now) < c.TTL/2 {
			c.beat = now
			c.advance(now)
		}
	}
}

// admitHere turns p's view into a vote if the push belongs to it: same
// incarnation, same ticket. If the push may be older than the view the node is to
// be asked.
func (c *Claim) admitHere(p *peer, m Push) bool {
	if !p.held ||
		c.Rules.on(RulePushTicket) && m.Ticket != p.tkt ||
		c.Rules.on(RulePushIncarnation) && m.Incarnation != p.inc {
		return false
	}
	switch {
	case p.vote:
	case p.unsure:
		p.again = true
	default:
		p.resized(m.Limit, m.LimitAt)
		p.vote, c.first = true, true
		if c.Counting {
			v := &p.own().content
			if v.told, v.sum, v.digest, v.all = true, m.Sum, m.Digest, (totals{m.Sum, m.Digest}); m.Sum == 0 {
				v.list(nil, 0, totals{})
			}
		}
	}
	return true
}

// Fail takes a request that will not be answered, for good or for now.
func (c *Claim) Fail(now Time, r Request, forGood bool) {
	c.expire(now)
	p := &c.peers[r.Node]
	if c.phase.Final() || r.Op == OpLeave || p.asked != r.Sent && !r.Merged {
		return
	}
	p.refused = forGood
	c.silent(now, p)
	c.advance(now)
}

// mostFailures is from how many on nothing changes.
const mostFailures = 8

// silent notes that a node did not answer in time or cannot be reached.
func (c *Claim) silent(now Time, p *peer) {
	p.asked, p.behind, p.next, p.hinted = 0, false, Never, false
	p.failures = min(p.failures, mostFailures-1) + 1
	if !p.refused && (!c.Try || c.phase == Holding) { // a try asks once
		p.next = now.Add(min(c.NodeTimeout<<p.failures/8, c.interval()))
	}
}

// Up says that a node's connection has come (back): ask it at once.
func (c *Claim) Up(now Time, node int) {
	c.expire(now)
	p := &c.peers[node]
	if c.phase.Final() {
		return
	}
	if p.asked == 0 {
		p.refused = false // what was for good may have ended with the connection
	}
	p.ask(now) // what was pushed after a request that is out had been executed may be lost, too
	c.advance(now)
}

// Down says that a node's connection is gone. Until the node answers again it counts as
// one that does not answer, so waiters that were settled there settle again on the nodes
// that are left (rule 4). Without the rule they find out when two requests in a row have
// failed, and the first of them is the next beat.
func (c *Claim) Down(now Time, node int) {
	c.expire(now)
	p := &c.peers[node]
	if c.phase.Final() || p.untouched() || !c.Rules.on(RuleDown) {
		return
	}
	p.failures = max(p.failures, 2)
	c.advance(now)
}

// Suspect says that a node does not answer others either: it is asked like the
// others, and not waited for.
func (c *Claim) Suspect(now Time, node int) {
	c.expire(now)
	if p := &c.peers[node]; !c.phase.Final() && p.asked != 0 {
		c.silent(now, p)
		c.advance(now)
	}
}

// Early says that the leases that some nodes gave, a bit for each, end so much
// earlier than the claim takes them to: clocks have parted, see Clocks.
func (c *Claim) Early(now Time, nodes uint32, by time.Duration) {
	if c.expire(now); c.phase.Final() {
		return
	}
	for i := range c.peers {
		if p := &c.peers[i]; nodes&(1<<i) != 0 && p.held {
			p.own().until = c.until(p).Add(-by)
		}
	}
	c.advance(now)
}
