package lease

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns how many permits there are and how many a claim asks for.
// Invariant: a larger number counts only when q views tell of it, a smaller one
// as soon as one view does.

// Limit returns how many permits there are as far as is known, and the newest
// Resize that a node has shown, 0 for none.
func (c *Claim) Limit(now protocol.Time) (n uint64, newest protocol.Ticket) {
	return c.capacity(now), c.newestLimit()
}

func (c *Claim) newestLimit() (newest protocol.Ticket) {
	for i := range c.peers {
		newest = max(newest, c.peers[i].extra().limitAt)
	}
	return newest
}

// MissedResize reports whether the node that gave an answer does not know the
// newest number of permits that any node knows: see Repair.MissedResize.
func (c *Claim) MissedResize(a *protocol.Answer) bool {
	return a.Status == protocol.OK && a.LimitAt < c.newestLimit()
}

func (p *peer) resized(limit uint64, at protocol.Ticket) {
	if at > p.extra().limitAt {
		m := p.mutableExtra()
		m.limit, m.limitAt = limit, at
	}
}

// capacity is how many permits there are, as far as the usable views tell. A
// Resize that a majority knows of is in at least one of any q views, so the
// newest that is heard of may be in force, and so may, if fewer than q know of
// that, the newest that q of them know of, or the number declared: it may never
// be recorded. Until that is known the least of them counts. Holders keep their
// permits, so for a holder it is what it was admitted under.
func (c *Claim) capacity(now protocol.Time) uint64 {
	if c.phase == Holding && c.Rules.On(protocol.RuleKeep) {
		return c.admittedCapacity
	}
	if !c.resizeKnown() {
		return c.Capacity
	}
	agreed := c.agreed(now)
	n := c.Capacity
	if agreed != nil && agreed.limitAt > 0 {
		n = agreed.limit
	}
	for i := range c.peers {
		m := c.peers[i].extra()
		if c.usable(&c.peers[i], now) && m.limitAt > 0 && (agreed == nil || m.limitAt > agreed.limitAt) && (m.limit < n || !c.Rules.On(protocol.RuleMore)) {
			n = m.limit
		}
	}
	return n
}

// agreed returns the view with the newest Resize that q usable views know of,
// in each of the sets; nil while there are fewer views.
func (c *Claim) agreed(now protocol.Time) *peerExtra {
	a := c.agreedIn(now, c.Sets.Present)
	if a == nil || c.Sets.Next == 0 {
		return a
	}
	if b := c.agreedIn(now, c.Sets.Next); b == nil || b.limitAt < a.limitAt {
		return b
	}
	return a
}

func (c *Claim) agreedIn(now protocol.Time, set uint32) *peerExtra {
	var views []*peerExtra
	for i := range c.peers {
		if p := &c.peers[i]; set&(1<<i) != 0 && c.usable(p, now) {
			views = append(views, p.extra())
		}
	}
	if len(views) < protocol.NeedOf(set) {
		return nil
	}
	slices.SortFunc(views, func(a, b *peerExtra) int { return cmp.Compare(b.limitAt, a.limitAt) })
	return views[protocol.NeedOf(set)-1]
}

func (c *Claim) resizeKnown() bool {
	for i := range c.peers {
		if c.peers[i].extra().limitAt > 0 {
			return true
		}
	}
	return false
}

// tooHeavy: all views agree that there are fewer permits than are asked for.
func (c *Claim) tooHeavy(now protocol.Time) bool {
	if !c.resizeKnown() {
		return false
	}
	agreed := c.agreed(now)
	if agreed == nil || agreed.limitAt == 0 || c.Weight <= agreed.limit {
		return false
	}
	for i := range c.peers {
		if p := &c.peers[i]; c.usable(p, now) && p.extra().limitAt != agreed.limitAt {
			return false
		}
	}
	return true
}
