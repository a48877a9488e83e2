package lease

import (
	"github.com/quorate/quorate/internal/protocol"
	"time"
)

// This file owns how a holder gets its place at nodes that have it at a higher
// ticket.
//
// A claim that reaches a node after a later one is there at a ticket above its
// own, and the node is no evidence of its place. A holder with a bare majority
// stays so. When nodes are exchanged, and those of its majority leave, its hold
// would end. So while nodes learn the holder asks each node to take it back at
// T, below the fence. Claims above T that it does not fit beside lose the
// node's vote.
//
// Invariant: a view of such a node counts for the holder half a guard time
// after it began. Each view that another claim has of that node by then was
// given since, and contains the holder: no lease is longer than half of the
// guard time. So the lemma holds for it as if the holder had been there all
// along.
//
// Invariant: each answer of the node to a claim above says that the node took
// one back. What it said or pushed before counts no more.

// misplaced reports whether a node has the claim at a ticket above T, and is to
// take it back.
func (c *Claim) misplaced(p *peer) bool {
	return p.held && p.ticket > c.ticket && c.phase == Holding && c.TakeBack && c.Rules.On(protocol.RuleTakeBack)
}

// viewBegins says that the view of a node that now answers did not exist
// before.
//
// Invariant: a node that was asked once to take the claim back may do so at any
// later time, as a request may be late. So each of its views counts later, from
// that request on.
func (c *Claim) viewBegins(now protocol.Time, p *peer) {
	switch {
	case p.marked && c.Rules.On(protocol.RuleBackLater):
		p.mutableExtra().backFrom = now.Add(c.backWait())
	case p.extraOrNil != nil:
		p.extraOrNil.backFrom = 0
	}
}

// backWait is half of the guard time of the set, and what a clock may gain
// meanwhile. Each client's leases are shorter: a client with longer ones is
// refused.
func (c *Claim) backWait() time.Duration {
	half := time.Duration(c.BackGuard.Half()) * time.Microsecond
	return half + Drift(half)
}

// forgetView has only what a node says from now on count. A holder keeps the
// views that it was admitted by: they had the claim that was taken back at
// other nodes.
func (c *Claim) forgetView(p *peer) {
	if !c.Rules.On(protocol.RuleTookBack) {
		return
	}
	c.distrustPushes(p)
	if c.Counting && c.phase != Holding {
		p.mutableExtra().lowerSet = lowerSet{}
	}
}

// voteOvertook reports whether an answer that says that the node took a claim
// back, and does not vote, may be older than the push of the vote that counts.
// Then it is as if it were lost: the vote counts with the lease of before, and
// the node is asked again. No push counts from then on, so the next answer
// decides.
func (c *Claim) voteOvertook(now protocol.Time, p *peer, a protocol.Answer) bool {
	if !a.TookBack || a.Vote || a.Foreign || !p.vote || p.pushUnsure || !c.running(p, now) || !c.Rules.On(protocol.RuleTookBack) {
		return false
	}
	c.distrustPushes(p)
	p.askAgain = true
	return true
}
