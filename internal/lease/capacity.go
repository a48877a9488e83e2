package lease

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns how many permits there are and how many a claim asks for.
// Invariant: a larger number counts only when q views tell of it, a smaller one
// as soon as one view does.

// capacity is how many permits there are, as far as the usable views tell. A
// Resize that a majority knows of is in at least one of any q views, so the
// newest that is heard of may be in force, and so may, if fewer than q know of
// that, the newest that q of them know of, or the number declared: it may never
// be recorded. Until that is known the least of them counts. Holders keep their
// permits, so for a holder it is what it was admitted under.
func (b ballot) capacity() uint64 {
	if b.phase == Holding && b.Rules.On(protocol.RuleKeep) {
		return b.admittedCapacity
	}
	if b.newestLimit() == 0 {
		return b.Capacity
	}
	agreed := b.agreed()
	n := b.Capacity
	if agreed != nil && agreed.limitAt > 0 {
		n = agreed.limit
	}
	for i := range b.peers {
		m := b.peers[i].extra()
		if b.usable(&b.peers[i], b.now) && m.limitAt > 0 && (agreed == nil || m.limitAt > agreed.limitAt) && (m.limit < n || !b.Rules.On(protocol.RuleMore)) {
			n = m.limit
		}
	}
	return n
}

// Limit returns how many permits there are as far as is known, and the newest
// Resize that a node has shown, 0 for none.
func (v *views) Limit(now protocol.Time) (n uint64, newest protocol.Ticket) {
	return v.at(now).capacity(), v.newestLimit()
}

// agreed returns the view with the newest Resize that q usable views know of,
// in each of the sets; nil while there are fewer views.
func (b ballot) agreed() *peerExtra {
	a := b.agreedIn(b.Sets.Present)
	if a == nil || b.Sets.Next == 0 {
		return a
	}
	if next := b.agreedIn(b.Sets.Next); next == nil || next.limitAt < a.limitAt {
		return next
	}
	return a
}

func (b ballot) agreedIn(set uint32) *peerExtra {
	var views []*peerExtra
	for i := range b.peers {
		if p := &b.peers[i]; set&(1<<i) != 0 && b.usable(p, b.now) {
			views = append(views, p.extra())
		}
	}
	if len(views) < protocol.NeedOf(set) {
		return nil
	}
	slices.SortFunc(views, func(a, b *peerExtra) int { return cmp.Compare(b.limitAt, a.limitAt) })
	return views[protocol.NeedOf(set)-1]
}

// tooHeavy: all views agree that there are fewer permits than are asked for.
func (b ballot) tooHeavy() bool {
	if b.newestLimit() == 0 {
		return false
	}
	agreed := b.agreed()
	if agreed == nil || agreed.limitAt == 0 || b.Weight <= agreed.limit {
		return false
	}
	for i := range b.peers {
		if p := &b.peers[i]; b.usable(p, b.now) && p.extra().limitAt != agreed.limitAt {
			return false
		}
	}
	return true
}
