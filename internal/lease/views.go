package lease

import (
	"math/bits"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what the nodes' views say at a moment: which nodes hold the
// claim, which of them vote for it, and until when a quorum does.
// Invariant: a view counts while its lease runs, and only at the claim's own
// ticket.

// running: the node holds the claim as far as this client knows. The node may
// hold it for longer: it takes the lease to begin when the request arrives, and
// this client when it was sent.
func (c *Claim) running(p *peer, now protocol.Time) bool {
	return p.held && (now < c.leaseEnds(p) || !c.Rules.On(protocol.RuleLease))
}

// leaseEnds is when the lease ends, and with it the view, that the newest
// acknowledgement brought: s + ttl - drift.
func (c *Claim) leaseEnds(p *peer) protocol.Time {
	if m := p.extraOrNil; m != nil && m.leaseEnds != 0 {
		return m.leaseEnds
	}
	until := p.ackSent.Add(c.TTL)
	if c.Rules.On(protocol.RuleDrift) {
		until = until.Add(-c.Drift)
	}
	return until
}

// usable is rule 3 (a) and (c); a view of another incarnation (b) has been
// replaced when that incarnation was first heard of, or, a holder's, when it
// first voted again.
func (c *Claim) usable(p *peer, now protocol.Time) bool {
	return c.running(p, now) && (p.ticket == c.ticket || !c.Rules.On(protocol.RuleExact))
}

// barred: no claim has the vote of the node, for another Redlock client has its
// key there. It does not tell claims apart, so it must not be one of the q at
// which T is settled.
func (c *Claim) barred(p *peer) bool {
	return p.extra().barred && !p.vote && c.Rules.On(protocol.RuleBarred)
}

// awaited: an answer of the node may still come. A try waits once for a node
// that is silent, not again with each settling round.
func (c *Claim) awaited(p *peer) bool { return p.pendingSince != 0 && (!c.Try || p.failures == 0) }

// exact returns the nodes that hold exactly T. Only these are evidence of the
// claim's place: a node that holds it at a lower ticket may have let a claim
// between the two in.
func (c *Claim) exact(now protocol.Time) (nodes uint32) {
	for i := range c.peers {
		if c.usable(&c.peers[i], now) {
			nodes |= 1 << i
		}
	}
	return nodes
}

func (c *Claim) Node(i int, now protocol.Time) (holds, votes bool) {
	p := &c.peers[i]
	return c.running(p, now), p.vote && c.usable(p, now)
}

// Known reports whether a quorum is known to hold the claim. If not, what is
// missing is not the turn but the nodes.
func (c *Claim) Known(now protocol.Time) bool {
	known := uint32(0)
	for i := range c.peers {
		if p := &c.peers[i]; c.running(p, now) {
			known |= 1 << i
		}
	}
	return c.Sets.Met(known)
}

func (c *Claim) Votes(now protocol.Time) int { return bits.OnesCount32(c.voting(now) & c.Sets.All()) }

// Voted reports whether a quorum votes for the claim. A claim that is counted
// may have to wait all the same.
func (c *Claim) Voted(now protocol.Time) bool { return c.Sets.Met(c.voting(now)) }

// voting returns the nodes whose usable views vote for the claim.
func (c *Claim) voting(now protocol.Time) (nodes uint32) {
	for i := range c.peers {
		if p := &c.peers[i]; p.vote && c.usable(p, now) {
			nodes |= 1 << i
		}
	}
	return nodes
}

// quorumDeadline returns when the peers that match and have a running lease are
// no quorum any more: the q-th longest lease of each set, and the earlier of
// the two.
func (c *Claim) quorumDeadline(match func(*peer) bool) protocol.Time {
	at := c.setDeadline(c.Sets.Present, match)
	if c.Sets.Next != 0 {
		at = min(at, c.setDeadline(c.Sets.Next, match))
	}
	return at
}

func (c *Claim) setDeadline(set uint32, match func(*peer) bool) protocol.Time {
	var buf [9]protocol.Time
	ends := buf[:0]
	for i := range c.peers {
		if p := &c.peers[i]; set&(1<<i) != 0 && match(p) {
			ends = append(ends, c.leaseEnds(p))
		}
	}
	if len(ends) < protocol.NeedOf(set) {
		return 0
	}
	slices.Sort(ends)
	return ends[len(ends)-protocol.NeedOf(set)]
}
