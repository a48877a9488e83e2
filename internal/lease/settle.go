package lease

import "github.com/quorate/quorate/internal/protocol"

// This file owns rule 2: a claim is settled when q nodes hold it at exactly T.
// Invariant: T only rises. Two settled claims have at least one node in common
// that holds both at their final tickets.

// settle is rule 2. T stays as it is while enough nodes may still take it.
//
// Note: Here is an incorrect rule, which refuses a ticket that is too low:
//
//	if ticket <= fence { return refused }
//
// The client that is farthest away is always late, and never gets in.
func (c *Claim) settle(now protocol.Time) {
	if c.Sets.Met(c.exact(now)) {
		c.phase = Waiting
		return
	}
	if c.Rules.On(protocol.RuleAbandon) && now.Sub(c.began) >= c.TTL {
		c.End(now, Expired)
		return
	}
	known, open, top := uint32(0), uint32(0), c.ticket
	for i := range c.peers {
		p := &c.peers[i]
		if p.neverSent() || c.awaited(p) && (p.behind || !p.held) {
			open |= 1 << i
		}
		if c.running(p, now) {
			known |= 1 << i
			top = max(top, p.ticket)
		}
	}
	switch {
	case c.Sets.Met(c.exact(now) | open): // T may still be reached
	case c.Sets.Met(known) && top > c.ticket:
		c.follow(now, top)
	case c.Try && open == 0:
		c.End(now, NoQuorum)
	}
}

func (c *Claim) follow(now protocol.Time, top protocol.Ticket) {
	c.settleRounds++
	if c.settleRounds > 2 && c.Rules.On(protocol.RuleSpread) {
		// Another claim of the same residue proposes the same T, each node
		// keeps one of them off it, and both go on like that. Any T above
		// serves; let the two differ.
		most := protocol.Ticket(255)
		if w := protocol.Ticket(c.Window.Half() / 2 / protocol.Residues); c.Window != 0 {
			most = min(most, w) // no farther than the nodes let it go
		}
		top += protocol.Residues * (protocol.Ticket(c.ID[c.settleRounds%8]) % (most + 1))
	}
	c.raise(now, top)
}

// raise makes T "the highest ticket answered", which q nodes may hold already,
// as each of them keeps its own ticket for the claim, and sends settle(id, T)
// to all that do not.
func (c *Claim) raise(now protocol.Time, top protocol.Ticket) {
	c.phase, c.ticket, c.raised = Joining, top, true
	if c.Sets.Met(c.exact(now)) {
		c.phase = Waiting
	}
	for i := range c.peers {
		p := &c.peers[i]
		if p.behind = true; !(p.held && p.ticket == c.ticket) && !p.refused && c.Absent&(1<<i) == 0 {
			c.send(now, i, protocol.OpSettle)
			p.pushUnsure = false // the first request with this T
		}
	}
}
