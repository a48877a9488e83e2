package protocol

import "time"

// The algorithm, in the order of protocol.md: an attempt starts (rule 1), is
// settled (2), is admitted or waits (3, 4), is valid until a deadline (5), is
// healed where it is missing (6) and leaves (7). What it knows is in attempt.go,
// what a view admits in view.go.

// Start sends join(id, T0) to all nodes at once (rule 1), but for those that are
// in later, a bit for each. These are asked after a while, or as soon as the
// others cannot make q votes by themselves. To the claim they are nodes that are
// far away, so nothing rests on it; and a hold that is over before has cost only
// q of the nodes something.
func (c *Claim) Start(now Time, t0 Ticket, later uint32, after time.Duration) {
	c.t, c.began, c.ask = t0, now, Never
	c.beat = c.next(now)
	for i := range c.peers {
		if later&(1<<i) != 0 {
			if c.peers[i].next = now.Add(after); !c.Rules.on(RuleRest) {
				c.peers[i].next = Never
			}
			continue
		}
		c.send(now, i, OpJoin)
	}
}

// Untouched says that nothing has ever been sent to the node.
func (c *Claim) Untouched(node int) bool { return c.peers[node].untouched() }

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

// resized takes what a node says of the number of permits.
func (p *peer) resized(limit uint64, at Ticket) {
	if at > p.heard().limitAt {
		m := p.own()
		m.limit, m.limitAt = limit, at
	}
}

// content takes what an answer says of the lower claims. Where votes are all
// that is needed it is not asked for, and not kept.
func (c *Claim) content(m *more, r Request, a Answer) {
	// A holder keeps the digests it was admitted by: newer views are subsets, but
	// one that is newer than the others would no longer compare equal to them.
	if a.Told && (!m.told || c.phase != Holding) {
		m.told, m.sum, m.digest = true, a.Sum, a.Digest
	}
	// Lists are counted, not compared: the newest is the best.
	switch base := (totals{a.BaseSum, a.BaseDigest}); {
	case a.Told && a.Sum == 0:
		m.list(nil, 0, totals{})
	case r.List && a.Vote && !a.Listed:
		if r.Ticket == c.since() && c.window > 0 {
			c.window--
		}
	case !a.Listed || r.Op != OpBeat && base != totals{}:
	case base == totals{}: // all of them
		m.list(a.Lower, 0, base)
	case r.Ticket > 0:
		m.list(a.Lower, r.Ticket, base)
	}
}

func (v *content) list(lower []Lower, from Ticket, base totals) {
	v.listed, v.lower, v.from, v.base = true, lower, from, base
}

// How far back lists may go: 4 ms, and sixteen times as far with each step.
const (
	leastBack   = Ticket(1) << 12
	firstWindow = 2 // a second
	wholeWindow = 6
)

// since is where the lists begin that are asked for. What differs between the
// nodes is mostly recent, so they go back for a second first; when the totals of
// what is older differ too, sixteen times as far, and then to the beginning. A node does not
// tell more than some hundred claims: where there are more, a sixteenth as far.
func (c *Claim) since() Ticket {
	if back := leastBack << (4 * c.window); c.window < wholeWindow && c.t > back {
		return c.t - back
	}
	return 0
}

// widen has the next lists go back further if the older claims are not the same in
// q of the views that are listed; in all of them for a holder, since any node may
// go and the rest must still admit it.
func (c *Claim) widen(now Time) {
	need := c.Quorum()
	if c.phase == Holding {
		need = max(need, c.listed(now))
	}
	if c.listed(now) >= c.Quorum() && c.comparable(now) < need {
		c.window = min(c.window+1, wholeWindow)
	}
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
			if v.told, v.sum, v.digest = true, m.Sum, m.Digest; m.Sum == 0 {
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

// Postpone says that there is no room for any of the joins at their nodes yet, so the
// attempt has not begun. It is not abandoned before it has (rule 2): an attempt that is
// abandoned unsent starts again at the end of the queue for room, and under a load that
// lasts for a ttl no attempt would ever get in.
func (c *Claim) Postpone() {
	if c.phase == Joining {
		c.began = Never.Add(-c.TTL)
	}
}

// Postponed reports whether the attempt has not begun.
func (c *Claim) Postponed() bool { return c.began == Never.Add(-c.TTL) }

// Begin begins a postponed attempt, with a ticket of now: T0 must not be older than the
// attempt (rule 2).
func (c *Claim) Begin(now Time, t0 Ticket) { c.t, c.began = t0, now }

// Depart says that r, which has waited at this client for room at its node, is sent now.
// It returns r with a new s: "s is before the request left", and a lease that counted
// from before the wait would be the shorter for it.
func (c *Claim) Depart(now Time, r Request) Request {
	p := &c.peers[r.Node]
	p.asked, p.next, p.hinted = now, Never, false
	if r.Sent = now; r.Op == OpJoin {
		r.Ticket = c.t
	}
	return r
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

// Renew asks every node for a new lease now, also when renewal has been
// stopped, and also where an older request is still out: the lease that answers
// that one ends earlier.
func (c *Claim) Renew(now Time) {
	if c.expire(now); c.phase != Holding {
		return
	}
	c.beat = c.next(now)
	for i := range c.peers {
		switch p := &c.peers[i]; {
		case p.refused:
		case p.held && p.tkt >= c.t:
			c.send(now, i, OpBeat)
		default:
			c.send(now, i, OpSettle)
		}
	}
}

// Shrink makes an admitted claim lighter: a writer becomes a reader, a
// semaphore gets permits back. That frees capacity and takes none, so it is
// safe at any time; every node is settled anew, with the new weight.
func (c *Claim) Shrink(now Time, weight uint64) {
	if c.expire(now); c.phase != Holding || weight >= c.Weight {
		return
	}
	c.Weight, c.shrunk = weight, now
	for i := range c.peers {
		c.peers[i].own().heavy = true
	}
	c.advance(now)
}

// StopRenewal lets the claim end with the leases it has.
func (c *Claim) StopRenewal() { c.mute = true }

// Muted reports whether StopRenewal was called.
func (c *Claim) Muted() bool { return c.mute }

// Leave withdraws the claim everywhere (rule 7).
func (c *Claim) Leave(now Time) {
	if c.expire(now); !c.phase.Final() {
		c.end(now, Left)
	}
}

// Tick lets time pass.
func (c *Claim) Tick(now Time) {
	c.expire(now)
	if !c.phase.Final() {
		c.advance(now)
	}
}

// expire is rule 5: at the deadline the hold is over, whatever else comes.
func (c *Claim) expire(now Time) {
	if c.phase == Holding && now >= c.deadline {
		if !c.Rules.on(RuleFinal) {
			return
		}
		c.end(now, Lost)
	}
}

// end makes the attempt final and leaves every node, "also where the join's
// outcome is unknown".
func (c *Claim) end(now Time, phase Phase) {
	c.phase, c.Out = phase, c.Out[:0]
	for i := range c.peers {
		if p := &c.peers[i]; p.held || c.Rules.on(RuleLeaveAll) && !p.untouched() {
			c.send(now, i, OpLeave)
		}
	}
}

// advance draws the conclusions of what is known now.
func (c *Claim) advance(now Time) {
	refusals := 0
	for i := range c.peers {
		p := &c.peers[i]
		if p.asked != 0 && now >= p.asked.Add(c.NodeTimeout) {
			c.silent(now, p)
		}
		if p.refused {
			refusals++
		}
	}
	if c.phase != Holding && c.Nodes-refusals < c.Quorum() {
		c.end(now, Rejected)
		return
	}
	if c.phase == Joining {
		c.settle(now)
	}
	if c.phase == Waiting && c.tooHeavy(now) {
		c.end(now, TooHeavy)
		return
	}
	if c.phase == Waiting {
		c.wait(now)
	}
	if c.phase == Holding {
		c.hold(now)
	}
	if !c.phase.Final() {
		c.tend(now)
	}
}

// settle is rule 2: repeat until q nodes hold exactly T.
func (c *Claim) settle(now Time) {
	if c.exact(now) >= c.Quorum() {
		c.phase = Waiting
		return
	}
	if c.Rules.on(RuleAbandon) && now.Sub(c.began) >= c.TTL {
		c.end(now, Lapsed)
		return
	}
	known, open, top := 0, 0, c.t
	for i := range c.peers {
		p := &c.peers[i]
		if p.untouched() || c.awaited(p) && (p.behind || !p.held) {
			open++
		}
		if c.running(p, now) {
			known++
			top = max(top, p.tkt)
		}
	}
	switch {
	case c.exact(now)+open >= c.Quorum(): // T may still be reached
	case known >= c.Quorum() && top > c.t:
		c.follow(now, top)
	case c.Try && open == 0:
		c.end(now, NoQuorum)
	}
}

// follow raises T to the highest ticket answered.
func (c *Claim) follow(now Time, top Ticket) {
	c.chase++
	if c.chase > 2 && c.Rules.on(RuleSpread) {
		// Another claim of the same residue proposes the same T, each node keeps
		// one of them off it, and both go on like that. Any T above serves; let
		// the two differ.
		most := Ticket(255)
		if w := Ticket(c.Window.half() / 2 / Residues); c.Window != 0 {
			most = min(most, w) // no farther than the nodes let it go
		}
		top += Residues * (Ticket(c.ID[c.chase%8]) % (most + 1))
	}
	c.raise(now, top)
}

// raise makes T "the highest ticket answered", which q nodes may hold already,
// and sends settle(id, T) to all that do not.
func (c *Claim) raise(now Time, top Ticket) {
	c.phase, c.t, c.raised = Joining, top, true
	if c.exact(now) >= c.Quorum() {
		c.phase = Waiting
	}
	for i := range c.peers {
		p := &c.peers[i]
		if p.behind = true; !(p.held && p.tkt == c.t) && !p.refused {
			c.send(now, i, OpSettle)
			p.unsure = false // the first request with this T
		}
	}
}

// wait is rule 4.
func (c *Claim) wait(now Time) {
	if c.admitted(now) {
		c.room = c.capacity(now)
		c.phase = Holding
		c.deadline = c.valid(now)
		return
	}
	var known, alive, aliveExact, votes, open, asked int
	top := c.t
	for i := range c.peers {
		p := &c.peers[i]
		if p.asked != 0 {
			asked++
		}
		if c.running(p, now) {
			known++
			if p.failures < 2 && !c.barred(p) {
				alive++
				top = max(top, p.tkt)
			}
		}
		if c.usable(p, now) && p.failures < 2 && !c.barred(p) {
			aliveExact++
		}
		switch {
		case c.usable(p, now) && p.vote:
			votes++
		case p.untouched() || c.awaited(p) || p.held && p.tkt < c.t && p.failures == 0 || p.hinted && c.ripens(p):
			open++
		}
	}
	q := c.Quorum()
	switch {
	case c.Try && (c.outvoted(now, votes, open) || c.pace > 0 && asked == 0):
		phase := Taken
		if c.Known(now) < q { // what is missing is not the turn: votes are there, and do not count yet
			phase = NoQuorum
		}
		c.end(now, phase)
		return
	case known < q: // its leases have lapsed: it starts again, and a try gives up
		c.end(now, Lapsed)
		return
	case !c.Try && aliveExact < q && alive >= q && top > c.t && c.Rules.on(RuleRaise):
		// "A waiter whose exact nodes die may raise T and settle again." So may one
		// where another client's key bars everybody: no more comes of these.
		c.began = now
		c.follow(now, top)
		return
	}
	c.count(now, votes)
}

// awaited: an answer of the node may still come. A try waits once for a node that
// is silent, not again with each settling round.
func (c *Claim) awaited(p *peer) bool { return p.asked != 0 && (!c.Try || p.failures == 0) }

// ripens: the node has voted, and its vote counts later. A try does not wait for
// that for longer than for the answer of the furthest node: a quarter of the ttl.
func (c *Claim) ripens(p *peer) bool {
	ripe := p.heard().ripe
	return ripe != 0 && !(c.Try && ripe > c.began.Add(c.TTL/4))
}

// outvoted decides when a try gives up (rule 4). As soon as the votes still to come
// cannot make it q, other claims are ahead on a majority. A holder is ahead for as
// long as it holds. Tries that start at the same moment are ahead of each other, each
// on some nodes, until all of them are settled; then the lowest ticket has every vote.
// So a try that any node has voted for stays for as long as that settling may take.
//
// Invariant: of tries that meet only each other, one is admitted. The first claim on a
// node has that node's vote, so at least one try stays, and each try that leaves makes
// the others' way shorter. Without the rule each of three tries finds another one ahead
// on two of three nodes, and all of them give up.
func (c *Claim) outvoted(now Time, votes, open int) bool {
	if votes+open >= c.Quorum() {
		if c.yield > 0 && now >= c.yield {
			c.yield = overdue
		}
		return false
	}
	if !c.first || !c.Rules.on(RuleStay) {
		return true
	}
	if c.yield == 0 {
		// The time so far is a measure of this client's round trips. The rest depends on
		// the id: two tries that give up at the same moment make way for neither.
		stay := 2 * max(now.Sub(c.began), time.Millisecond/2)
		c.yield = now.Add(min(stay+stay*time.Duration(c.ID[2])/256, c.NodeTimeout))
	}
	return now >= c.yield
}

// overdue is a time to give up that has passed while an answer was still to come.
const overdue Time = 1

// count asks for the lists when q votes are there and the counting rule does
// not admit: at once, and "again soon (a round trip, doubling, jittered)".
func (c *Claim) count(now Time, votes int) {
	if votes < c.Quorum() {
		c.ask, c.pace = Never, 0
		return
	}
	if c.pace > 0 && now < c.ask {
		return
	}
	c.pace = min(max(2*c.pace, 2*time.Millisecond), c.interval(), 2*c.NodeTimeout)
	c.widen(now)
	c.ask = now.Add(c.pace - c.pace*time.Duration(c.ID[0])/1024)
	for i := range c.peers {
		if p := &c.peers[i]; p.held && p.asked == 0 {
			c.send(now, i, OpBeat)
		}
	}
}

// hold recomputes the deadline: "a claim is held at time t only while rule 3
// still admits it with the views usable at t".
func (c *Claim) hold(now Time) {
	was := c.deadline
	c.remember(now)
	c.deadline = c.valid(now)
	if now >= c.deadline && c.Rules.on(RuleFinal) {
		c.deadline = min(was, now) // it was held until then
		c.end(now, Lost)
	}
}

// tend sends what is due: beats, hinted questions, second tries, and the
// settling of every node that is below T or does not hold the claim (rule 6).
func (c *Claim) tend(now Time) {
	if c.phase == Holding && c.mute {
		return
	}
	due := now >= c.beat
	if due {
		c.beat = c.next(now)
		if c.Counting && c.phase == Holding {
			c.widen(now)
		}
	}
	asking, rest := c.phase == Waiting && now >= c.hinted(), c.short(now)
	for i := range c.peers {
		p := &c.peers[i]
		if p.asked != 0 || p.refused && !due {
			continue
		}
		again := p.next != 0 && !p.hinted && now >= p.next
		switch {
		case !p.held && (due || again || rest && p.untouched()):
			if !c.raised && (c.phase == Joining || p.untouched()) || !c.Rules.on(RuleHeal) {
				c.send(now, i, OpJoin)
			} else {
				c.send(now, i, OpSettle)
			}
		case p.held && p.tkt < c.t && (c.phase == Joining || c.Rules.on(RuleSettleBelow)) && (p.failures == 0 || due || again):
			c.send(now, i, OpSettle)
		case p.held && p.heard().heavy && (p.failures == 0 || due || again):
			c.send(now, i, OpSettle)
		case p.held && (due || again || asking && !p.vote):
			c.send(now, i, OpBeat)
		}
	}
}

// short: those that have been asked cannot make q votes any more.
func (c *Claim) short(now Time) bool {
	if c.phase == Holding || !c.Rules.on(RuleRest) {
		return false
	}
	n := 0
	for i := range c.peers {
		if p := &c.peers[i]; p.asked != 0 || p.vote && c.usable(p, now) {
			n++
		}
	}
	return n < c.Quorum()
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

func (c *Claim) send(now Time, node int, op Op) {
	p := &c.peers[node]
	if op == OpSettle || op == OpJoin && !p.untouched() {
		c.doubt(p)
	}
	p.asked, p.next, p.hinted = now, Never, false
	// A holder whose views differ learns the lists in time: when a node goes, the
	// rest must still admit it.
	list := op == OpBeat && c.Counting && (c.phase == Waiting && c.pace > 0 || c.phase == Holding && c.differ(now) && c.Rules.on(RuleLists))
	t := c.t
	if list {
		t = c.since()
	}
	if c.Out == nil {
		c.Out = outs.Get().(*[outSize]Request)[:0]
	}
	c.Out = append(c.Out, Request{Node: node, Op: op, Ticket: t, List: list, Sent: now})
}
