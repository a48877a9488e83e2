package lease

import (
	"time"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// The conclusions that a claim draws from what it knows: it settles (rule 2),
// waits (rule 4) and holds. It also sends the requests that are due: renewals
// (rule 6), second tries, and settles to nodes that are below T or have lost
// the claim.
// Invariant: advance runs after each event, so the phase, the deadline and Wake
// of a claim always agree with what it knows.
// Invariant: sendDue sends nothing to a node at which a request of the claim is
// unanswered, so a slow node is never flooded.
// Invariant: T only rises. Two settled claims have at least one node in common
// that holds both at their final tickets.

// advance draws the conclusions from what is known now. Take nodes A, B and C:
// A votes for the claim, and B's answer with a second vote arrives. Two nodes
// have T, so settle makes the claim Waiting, and wait finds two votes and makes
// it Holding. Its deadline is when the first of the two leases ends. C has not
// answered, so sendDue sends it nothing. The phases have the order of the
// rules, so one event may take a claim from Joining to Holding. sendDue comes
// last: it must not renew a claim that has just been lost, nor ask for a vote
// that has just been counted.
func (c *Claim) advance(now protocol.Time) {
	refusals := uint32(0)
	for i := range c.State.peers {
		p := &c.State.peers[i]
		if p.pendingSince != 0 && now >= p.pendingSince.Add(c.State.NodeTimeout) {
			p.noteSilence(&c.State, now)
		}
		if p.refused {
			refusals |= 1 << i
		}
	}
	if c.State.phase != Holding && c.State.Sets.Blocked(refusals) {
		c.End(now, Rejected)
		return
	}
	if c.State.phase == Joining {
		c.settle(now)
	}
	if c.State.phase == Waiting {
		b := c.State.at(now)
		if b.tooHeavy() {
			c.End(now, TooHeavy)
			return
		}
		c.wait(b)
	}
	if c.State.phase == Holding { // an answer may remove a vote as well as extend a lease
		was, b := c.State.deadline, c.State.at(now)
		b.saveAdmitted()
		c.State.deadline = max(b.validUntil(), c.giveUpAt)
		if now >= c.State.deadline { //mutant:RuleFinal
			c.State.deadline = min(was, now) // it was held until then
			c.End(now, Lost)
		}
	}
	if !c.State.phase.Final() {
		c.sendDue(now)
		if invariant.On {
			invariant.Check(c.Wake() > now, "what depends on time alone is done when its time comes")
		}
	}
}

// settle is rule 2. T stays as it is while enough nodes may still take it.
//
// Take nodes A, B and C, and a claim whose T0 is 100. A has given no later ticket,
// and takes the claim at 100. B has given another claim 110, so it takes this one
// at 120, above that. C is down. No ticket has two nodes, and once C counts as
// silent none may still get there. So T becomes 120, the highest answer: B has it
// already, and A is asked to settle the claim there. Then two nodes have T.
//
// Note: Here is an incorrect rule, which refuses a ticket that is too low:
//
//	if ticket <= fence { return refused }
//
// The client that is farthest away is always late, and never gets in.
func (c *Claim) settle(now protocol.Time) {
	if c.State.Sets.Met(c.State.exact(now)) {
		c.State.phase = Waiting
		return
	}
	if now.Sub(c.State.began) >= c.State.TTL { //mutant:RuleAbandon
		c.End(now, Expired)
		return
	}
	known, open, top := uint32(0), uint32(0), c.State.ticket
	for i := range c.State.peers {
		p := &c.State.peers[i]
		if p.neverSent() || p.awaited(c.State.Try) && (p.behind || !p.held) {
			open |= 1 << i
		}
		if p.running(&c.State, now) {
			known |= 1 << i
			top = max(top, p.ticket)
		}
	}
	switch {
	case c.State.Sets.Met(c.State.exact(now) | open): // T may still be reached
	case c.State.Sets.Met(known) && top > c.State.ticket:
		c.raise(now, c.State.next(top))
	case c.State.Try && open == 0:
		c.End(now, NoQuorum)
	}
}

// raise makes T "the highest ticket answered", which q nodes may hold already,
// as each of them keeps its own ticket for the claim, and sends settle(id, T)
// to all that do not.
func (c *Claim) raise(now protocol.Time, top protocol.Ticket) {
	c.State.phase, c.State.ticket, c.State.raised = Joining, top, true
	if c.State.Sets.Met(c.State.exact(now)) {
		c.State.phase = Waiting
	}
	for i := range c.State.peers {
		p := &c.State.peers[i]
		if p.behind = true; !(p.held && p.ticket == c.State.ticket) && !p.refused &&
			c.State.Absent&(1<<i) == 0 {
			c.send(now, i, protocol.OpSettle)
			p.pushUnsure = false // the first request with this T
		}
	}
}

// wait is rule 4.
func (c *Claim) wait(b ballot) {
	now := b.now
	if b.admitted() {
		c.State.admittedCapacity = b.capacity()
		c.State.phase, c.giveUpAt = Holding, 0
		c.State.deadline = b.validUntil()
		return
	}
	var known, alive, aliveExact, open uint32
	asked := 0
	top := c.State.ticket
	for i := range c.State.peers {
		p := &c.State.peers[i]
		if p.pendingSince != 0 {
			asked++
		}
		if p.running(&c.State, now) {
			known |= 1 << i
			if p.failures < 2 && !p.isBarred() {
				alive |= 1 << i
				top = max(top, p.ticket)
			}
		}
		if p.usable(&c.State, now) && p.failures < 2 && !p.isBarred() {
			aliveExact |= 1 << i
		}
		if p.neverSent() || p.awaited(c.State.Try) || p.held && p.ticket < c.State.ticket && p.failures == 0 {
			open |= 1 << i
		}
	}
	switch {
	case c.State.Try && (c.outvoted(now, b.votes|open) || c.countPause > 0 && asked == 0):
		c.End(now, Busy)
		return
	case !c.State.Sets.Met(known): // its leases have lapsed: the claim starts again, or a try gives up
		c.End(now, Expired)
		return
	case !c.State.Try && !c.State.Sets.Met(aliveExact) && c.State.Sets.Met(alive) && top > c.State.ticket: //mutant:RuleRaise
		// "A waiter whose exact nodes die may raise T and settle again." So may
		// a waiter one of whose nodes is barred by another client's key,
		// because such a node gives no vote.
		c.State.began = now
		c.raise(now, c.State.next(top))
		return
	}
	c.count(b)
}

// outvoted reports whether a try gives up (rule 4): as soon as the votes that
// may still come cannot complete q. But tries that start at the same moment are
// ahead of each other, each on some nodes, until all of them are settled. So a
// try that has got any vote stays for as long as that may take.
// Invariant: of tries that meet only each other, one is admitted, as
// docs/internals/protocol.md says at "Tries".
func (c *Claim) outvoted(now protocol.Time, possible uint32) bool {
	if c.State.Sets.Met(possible) {
		if c.giveUpAt > 0 && now >= c.giveUpAt {
			c.giveUpAt = overdue
		}
		return false
	}
	if !c.State.votedOnce { //mutant:RuleStay=true
		return true
	}
	if c.giveUpAt == 0 {
		// The time so far measures the round trips of this client. The rest
		// depends on the id: if two tries gave up at the same moment, neither
		// would get the lock.
		stay := 2 * max(now.Sub(c.State.began), time.Millisecond/2)
		c.giveUpAt = now.Add(min(stay+stay*time.Duration(c.State.ID[2])/256, c.State.NodeTimeout))
	}
	return now >= c.giveUpAt
}

// overdue marks a time to give up that has passed while an answer was still
// outstanding.
const overdue protocol.Time = 1

// count asks for the lists if q nodes vote and the counting rule does not admit
// the claim: at once, and "again soon (a round trip, doubling, jittered)".
func (c *Claim) count(b ballot) {
	if !b.s.Sets.Met(b.votes) {
		c.countAt, c.countPause = protocol.Never, 0
		return
	}
	if c.countPause > 0 && b.now < c.countAt {
		return
	}
	c.countPause = min(max(2*c.countPause, 2*time.Millisecond), c.State.interval(), 2*c.State.NodeTimeout)
	b.deepenLists()
	c.countAt = b.now.Add(c.countPause - c.countPause*time.Duration(c.State.ID[0])/1024)
	for i := range c.State.peers {
		if p := &c.State.peers[i]; p.held && p.pendingSince == 0 {
			c.send(b.now, i, protocol.OpBeat)
		}
	}
}

// Wake returns when the claim wants a Tick.
// Invariant: everything that depends on time alone is included here: a
// deadline, the end of a try, a silent node.
func (c *Claim) Wake() protocol.Time {
	if c.State.phase.Final() {
		return protocol.Never
	}
	w := c.beatAt
	switch c.State.phase {
	case Joining:
		w = min(w, c.State.began.Add(c.State.TTL)) //mutant:RuleAbandon
	case Waiting:
		w = min(w, c.State.hinted(), c.countAt)
		if c.giveUpAt > overdue {
			w = min(w, c.giveUpAt)
		}
		// The claim loses its place in the queue when its leases have ended on
		// too many nodes. Then it starts again instead of waiting for a turn
		// that cannot come.
		if l := c.State.placeEnds(); l > 0 { //mutant:RuleLease
			w = min(w, l)
		}
	case Holding:
		if c.State.NoRenewal {
			return c.wakeUnrenewed()
		}
		w = min(w, c.State.deadline) //mutant:RuleFinal
	}
	for i := range c.State.peers {
		p := &c.State.peers[i]
		if p.pendingSince != 0 {
			w = min(w, p.pendingSince.Add(c.State.NodeTimeout))
		} else if p.askAt != 0 && !p.hinted && c.State.Absent&(1<<i) == 0 {
			w = min(w, p.askAt)
		}
	}
	return w
}

// wakeUnrenewed is Wake of a hold that is not renewed.
func (c *Claim) wakeUnrenewed() protocol.Time {
	w := c.State.deadline
	for i := range c.State.peers {
		switch p := &c.State.peers[i]; {
		case !c.State.owesWeight(i):
		case p.pendingSince != 0:
			w = min(w, p.pendingSince.Add(c.State.NodeTimeout))
		case p.askAt != 0:
			w = min(w, p.askAt)
		}
	}
	return w
}

// sendDue sends what is due (rule 6), including requests that a hint asked for.
func (c *Claim) sendDue(now protocol.Time) {
	if c.State.phase == Holding && c.State.NoRenewal {
		c.sendWeight(now)
		return
	}
	due := now >= c.beatAt
	if due {
		c.beatAt = c.State.nextBeat(now)
		if c.State.Counting && c.State.phase == Holding {
			c.State.at(now).deepenLists()
		}
	}
	asking, rest := c.State.phase == Waiting && now >= c.State.hinted(), c.State.outOfVotes(now)
	for i := range c.State.peers {
		p := &c.State.peers[i]
		if p.pendingSince != 0 || p.refused && !due || c.State.Absent&(1<<i) != 0 {
			continue
		}
		again := p.askAt != 0 && !p.hinted && now >= p.askAt
		switch {
		case !p.held && (due || again || rest && p.neverSent()):
			if !c.State.raised && (c.State.phase == Joining || p.neverSent()) { //mutant:RuleSettleMissing=true
				c.send(now, i, protocol.OpJoin)
			} else {
				c.send(now, i, protocol.OpSettle)
			}
		case p.held && (p.failures == 0 || due || again) &&
			p.ticket < c.State.ticket: //mutant:RuleSettleBelow=p.ticket < c.State.ticket && c.State.phase == Joining
			c.send(now, i, protocol.OpSettle)
		case p.held && p.extra().shrinkPending && (p.failures == 0 || due || again):
			c.send(now, i, protocol.OpSettle)
		case p.held && (due || again || asking && !p.vote):
			c.send(now, i, protocol.OpBeat)
		}
	}
}

// sendWeight is sendDue for a hold that is not renewed. It sends only the
// weight of Shrink, so that what Shrink gave back becomes free.
func (c *Claim) sendWeight(now protocol.Time) {
	for i := range c.State.peers {
		p := &c.State.peers[i]
		again := p.askAt != 0 && now >= p.askAt
		if c.State.owesWeight(i) && p.pendingSince == 0 && (p.failures == 0 || again) {
			c.send(now, i, protocol.OpSettle)
		}
	}
}
