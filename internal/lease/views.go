package lease

import (
	"math/bits"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a claim knows of each node, and what the nodes' views say
// at a moment: which nodes hold the claim, which of them vote for it, and until
// when a quorum does.
// Invariant: a peer describes one incarnation of its node. An answer or a push
// of another incarnation replaces it or is ignored.
// Invariant: a view counts while its lease runs, and only at the claim's own
// ticket.

// A process may have a great many peers: see TestSizes.
type peer struct {
	ticket       protocol.Ticket      // held: at this ticket ...
	incarnation  protocol.Incarnation // ... in this incarnation
	ackSent      protocol.Time        // s of the newest acknowledgement; older ones are ignored
	pendingSince protocol.Time        // s of the request that is out; 0: none
	askAt        protocol.Time        // when it is asked again; 0 and Never: not by itself
	extraOrNil   *peerExtra           // nil: nothing of that

	held       bool  // the node said that it holds the claim
	vote       bool  // its view votes for the claim
	waiters    bool  // claims without a vote are queued there
	hinted     bool  // askAt is when asking again may bring the vote; else it is a second try
	behind     bool  // it has not answered the settling round
	askAgain   bool  // something may have been missed while a request was out: ask again after the answer
	pushUnsure bool  // it may have taken its vote back: only answers say whether it votes, see distrustPushes
	evicts     bool  // it has said since its last answer that an operator ends the hold
	refused    bool  // for good: another capacity, a wrong type, a wrong password
	failures   uint8 // in a row, as far as that can count
}

// ask has the node asked now, or after the answer that is still to come: at
// most one request of a claim is under way at a node, but what has changed
// since it was sent must not be missed.
func (p *peer) ask(now protocol.Time) {
	if p.pendingSince != 0 {
		p.askAgain = true
	} else {
		p.askAt, p.hinted = now, false
	}
}

func (p *peer) neverSent() bool {
	return p.pendingSince == 0 && p.ackSent == 0 && p.failures == 0 && !p.held && !p.refused
}

// mostFailures is from how many on nothing changes.
const mostFailures = 8

// peerExtra is what a claim knows of a node beside that. It is apart for its
// size: a process that holds 100,000 locks on five nodes has half a million
// peers. Claims that are not counted hardly ever do.
type peerExtra struct {
	lowerSet
	admittedSet   lowerSet        // a holder's: when this last admitted the claim
	limit         uint64          // how many permits there are since
	limitAt       protocol.Ticket // the Resize that the node knows of; 0: none
	shrinkPending bool            // it has not confirmed the weight of Shrink yet
	barred        bool            // another client's key keeps all claims out there
	leaseEnds     protocol.Time   // when the lease ends, if not as its ttl tells: the node is recovering and has forgotten it, or clocks disagree; 0: as that
	earlyPush     protocol.Push   // a push that overtook the answer it belongs to
}

// noExtra is never written to.
var noExtra peerExtra

// extra returns what is to be read only.
func (p *peer) extra() *peerExtra {
	if p.extraOrNil == nil {
		return &noExtra
	}
	return p.extraOrNil
}

func (p *peer) mutableExtra() *peerExtra {
	if p.extraOrNil == nil {
		p.extraOrNil = new(peerExtra)
	}
	return p.extraOrNil
}

// lowerSet is a node's list or total of the claims before this one, where they
// count.
type lowerSet struct {
	known        bool
	sum, digest  uint64
	all          totals // of a set that the node votes for and that the lower claims are a part of
	listed       bool
	lower        []protocol.Lower
	from         protocol.Ticket // where the list begins,
	prefixTotals totals          // and what there is before
}

// totals are what is known of claims that are not listed.
type totals struct{ sum, digest uint64 }

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
