package protocol

import (
	"cmp"
	"slices"
)

// running: the node holds the claim as far as this client knows.
func (c *Claim) running(p *peer, now Time) bool {
	return p.held && (now < c.until(p) || !c.Rules.on(RuleLease))
}

// until is when the lease ends, and with it the view, that the newest acknowledgement
// brought: s + ttl - drift.
func (c *Claim) until(p *peer) Time {
	if m := p.more; m != nil && m.until != 0 {
		return m.until
	}
	until := p.taken.Add(c.TTL)
	if c.Rules.on(RuleDrift) {
		until = until.Add(-c.Drift)
	}
	return until
}

// barred: nobody has the vote of the node, for another Redlock client has its key there. It
// does not tell claims apart, so it must not be one of the q at which T is settled:
// of two claims each may have that node and one more, and be behind at the third.
func (c *Claim) barred(p *peer) bool { return p.heard().barred && !p.vote && c.Rules.on(RuleBarred) }

// usable is rule 3 (a) and (c); a view of another incarnation (b) has been
// replaced when that incarnation was first heard of, or, a holder's, when it
// first voted again.
func (c *Claim) usable(p *peer, now Time) bool {
	return c.running(p, now) && (p.tkt == c.t || !c.Rules.on(RuleExact))
}

// exact counts the nodes that hold exactly T.
func (c *Claim) exact(now Time) int {
	n := 0
	for i := range c.peers {
		if c.usable(&c.peers[i], now) {
			n++
		}
	}
	return n
}

// admitted is rule 3: "V >= q, at least q views vote for it, and the weights
// of the counted claims plus its own fit".
func (c *Claim) admitted(now Time) bool {
	if c.Votes(now) < c.Quorum() {
		return false
	}
	// With q votes, a claim that does not fit beside this one is in at most
	// V - q views, so it counts for at most N - q < q and is never counted. For
	// a mutex and for readers and writers that is all there is to check.
	return !c.Counting || !c.Rules.on(RuleCounting) || c.fits(now)
}

// fits is the counting rule for semaphores: "a lower claim e counts if
// (views that contain e) + (N - V) >= q".
//
// Only voting views whose content is known are used; leaving a view out moves
// every claim it contains from "contained" to "N - V" and adds one to the
// others, so it can only refuse. Equal digests and sums mean equal content:
// then each claim is in all V views, counts, and by the votes they all fit.
//
// Sums and digests may be of more than the lower claims: where a list is too long a
// node tells those of all claims with votes. That can only refuse, too. Let q views lie
// within one set. A claim that is not in the set is in V - q views at most, so it does
// not count. And the node that votes for all of the set has room for it.
//
// A holder hears of one node after the other how it has gone on, and may not be
// able to compare what is new with what is old. It still knows what it knew when
// it was last admitted, and claims only ever go from a view.
func (c *Claim) fits(now Time) bool {
	if c.shown(now) {
		return true
	}
	if c.phase != Holding {
		return false
	}
	c.recall()
	defer c.recall()
	return c.shown(now)
}

// recall exchanges what is known for what was known.
func (c *Claim) recall() {
	for i := range c.peers {
		if m := c.peers[i].more; m != nil {
			m.content, m.was = m.was, m.content
		}
	}
}

// remember keeps what admits the claim.
func (c *Claim) remember(now Time) {
	if !c.Counting || c.Votes(now) < c.Quorum() || !c.shown(now) {
		return
	}
	for i := range c.peers {
		if m := c.peers[i].more; m != nil {
			m.was = m.content
		}
	}
}

// shown is fits by what is known now.
func (c *Claim) shown(now Time) bool {
	if alike, sum := c.alike(now); alike >= c.Quorum() && (!c.known() || sum+c.Weight <= c.capacity(now)) {
		return true
	}
	if c.roomy(now) {
		return true
	}
	for i := range c.peers {
		if v := c.peers[i].heard(); v.listed && c.counted(now, v.from) {
			return true
		}
	}
	return false
}

// counted is shown by the lists: by those that begin at a ticket, and by those of
// all claims. What came before the lists is told by its total only, and counts
// in any case; once where two views tell the same.
func (c *Claim) counted(now Time, from Ticket) bool {
	type tally struct {
		views  int
		weight uint64
	}
	lower, bases, views := map[ID]tally{}, map[totals]bool{}, 0
	for i := range c.peers {
		p := &c.peers[i]
		v := p.heard()
		if !v.listed || !p.vote || !c.usable(p, now) || v.from != from && v.from != 0 {
			continue
		}
		views++
		bases[v.base] = true
		for _, e := range v.lower {
			t, known := lower[e.ID]
			if !known || e.Weight < t.weight {
				t.weight = e.Weight // claims only ever get lighter: this view is the newer one
			}
			t.views++
			lower[e.ID] = t
		}
	}
	if views < c.Quorum() {
		return false
	}
	total := c.Weight
	for b := range bases {
		total += b.sum
	}
	for _, t := range lower {
		if t.views+c.Nodes-views >= c.Quorum() {
			total += t.weight
		}
	}
	return total <= c.capacity(now)
}

// comparable returns how many voting views, at most, are listed from the same
// ticket on and have the same before it.
func (c *Claim) comparable(now Time) (most int) {
	for i := range c.peers {
		same := 0
		a := c.peers[i].heard()
		for j := range c.peers {
			p := &c.peers[j]
			if b := p.heard(); b.listed && p.vote && c.usable(p, now) && a.from == b.from && a.base == b.base {
				same++
			}
		}
		most = max(most, same)
	}
	return most
}

// listed counts the voting views that are listed.
func (c *Claim) listed(now Time) int {
	n := 0
	for i := range c.peers {
		if p := &c.peers[i]; p.heard().listed && p.vote && c.usable(p, now) {
			n++
		}
	}
	return n
}

// capacity is how many permits there are, as far as the usable views tell. A
// Resize that a majority knows of is in at least one of any q views, so the
// newest that is heard of may be in force, and so may, if fewer than q know of
// that, the newest that q of them know of, or the number declared: it may never
// be recorded. Until that is known the least of them counts. Who has permits
// keeps them, so for a holder it is what it was admitted under.
func (c *Claim) capacity(now Time) uint64 {
	if c.phase == Holding && c.Rules.on(RuleKeep) {
		return c.room
	}
	if !c.known() {
		return c.Capacity
	}
	agreed := c.agreed(now)
	n := c.Capacity
	if agreed != nil && agreed.limitAt > 0 {
		n = agreed.limit
	}
	for i := range c.peers {
		m := c.peers[i].heard()
		if c.usable(&c.peers[i], now) && m.limitAt > 0 && (agreed == nil || m.limitAt > agreed.limitAt) && (m.limit < n || !c.Rules.on(RuleMore)) {
			n = m.limit
		}
	}
	return n
}

// agreed returns the view with the newest Resize that q usable views know of; nil
// while there are fewer views.
func (c *Claim) agreed(now Time) *more {
	var views []*more
	for i := range c.peers {
		if p := &c.peers[i]; c.usable(p, now) {
			views = append(views, p.heard())
		}
	}
	if len(views) < c.Quorum() {
		return nil
	}
	slices.SortFunc(views, func(a, b *more) int { return cmp.Compare(b.limitAt, a.limitAt) })
	return views[c.Quorum()-1]
}

// known: some node has told of a Resize.
func (c *Claim) known() bool {
	for i := range c.peers {
		if c.peers[i].heard().limitAt > 0 {
			return true
		}
	}
	return false
}

// tooHeavy: all views agree that there are fewer permits than are asked for.
func (c *Claim) tooHeavy(now Time) bool {
	if !c.known() {
		return false
	}
	agreed := c.agreed(now)
	if agreed == nil || agreed.limitAt == 0 || c.Weight <= agreed.limit {
		return false
	}
	for i := range c.peers {
		if p := &c.peers[i]; c.usable(p, now) && p.heard().limitAt != agreed.limitAt {
			return false
		}
	}
	return true
}

// alike returns how many usable voting views have the same content, at most,
// and the weight of that.
func (c *Claim) alike(now Time) (most int, sum uint64) {
	for i := range c.peers {
		same := 0
		a := c.peers[i].heard()
		for j := range c.peers {
			p := &c.peers[j]
			if b := p.heard(); c.usable(p, now) && p.vote && b.told && a.sum == b.sum && a.digest == b.digest {
				same++
			}
		}
		if same > most {
			most, sum = same, a.sum
		}
	}
	return most, sum
}

// differ: not all views are known to have the same content.
func (c *Claim) differ(now Time) bool {
	same, _ := c.alike(now)
	return same < c.exact(now)
}

// roomy shows without any list that there is room: a claim that counts is in at
// least k = q - (N - V) of the V views, so together they weigh at most a k-th
// of what the views do.
func (c *Claim) roomy(now Time) bool {
	views, sum := 0, uint64(0)
	for i := range c.peers {
		p := &c.peers[i]
		if m := p.heard(); c.usable(p, now) && p.vote && m.told {
			views++
			sum += m.sum
		}
	}
	k := c.Quorum() - (c.Nodes - views)
	return views >= c.Quorum() && k > 0 && c.Weight+sum/uint64(k) <= c.capacity(now)
}

// valid is rule 5's deadline: the first moment at which the views that are
// usable then no longer admit the claim. Leases only end as time passes, so it
// is the first end of a lease at which admission fails.
func (c *Claim) valid(now Time) Time {
	if !c.Rules.on(RuleRecheck) || !c.Rules.on(RuleLease) {
		return c.nth(func(p *peer) bool { return p.held })
	}
	if !c.Counting {
		return c.nth(func(p *peer) bool { return p.vote && c.usable(p, now) })
	}
	ends := make([]Time, 0, len(c.peers))
	for i := range c.peers {
		if p := &c.peers[i]; c.usable(p, now) {
			ends = append(ends, c.until(p))
		}
	}
	slices.Sort(ends)
	for _, t := range append([]Time{now}, ends...) {
		if !c.admitted(t) {
			return t
		}
	}
	return now
}

// nth returns when fewer than q of the peers that match will have a running lease.
func (c *Claim) nth(match func(*peer) bool) Time {
	var buf [9]Time
	ends := buf[:0]
	for i := range c.peers {
		if p := &c.peers[i]; match(p) {
			ends = append(ends, c.until(p))
		}
	}
	if len(ends) < c.Quorum() {
		return 0
	}
	slices.Sort(ends)
	return ends[len(ends)-c.Quorum()]
}
