package lease

import (
	"math/bits"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// Rule 3: which views admit a claim. Votes decide. For semaphores the counting
// rule decides too, because votes alone would admit too many claims. This file
// also finds out how many permits there are.
// Invariant: leaving out a view, or knowing less of one, can only refuse.
// Invariant: a larger number of permits counts only once q views report it, a
// smaller one as soon as one view does.
// Invariant: a claim is held at a time t only if rule 3 admits it with the
// views that are usable at t. So the deadline is the first end of a lease at
// which rule 3 fails.

// admitted is rule 3: "V >= q, at least q views vote for it, and the weights
// of the counted claims plus its own fit".
func (b ballot) admitted() bool {
	if !b.s.Sets.Met(b.votes) {
		return false
	}
	// With q votes, a claim that does not fit alongside this one is in at most
	// V - q views, so it counts for at most N - q < q and is never counted. For
	// a mutex and for readers and writers nothing else needs to be checked.
	return !b.s.Counting || b.fits() //mutant:RuleCounting=true
}

// validUntil is rule 5's deadline. Leases only end as time passes: see above.
func (b ballot) validUntil() protocol.Time { //mutant:RuleRecheck,RuleLease=b.s.placeEnds()
	if !b.s.Counting {
		return b.s.quorumDeadline(b.votes)
	}
	ends := make([]protocol.Time, 0, len(b.s.peers))
	for i := range b.s.peers {
		if p := &b.s.peers[i]; p.usable(b.s, b.now) {
			ends = append(ends, p.leaseEnds(b.s))
		}
	}
	slices.Sort(ends)
	for _, t := range append([]protocol.Time{b.now}, ends...) {
		if !b.s.at(t).admitted() {
			return t
		}
	}
	return b.now
}

// fits is the counting rule for semaphores. N - V nodes have no usable view, so
// each lower claim is assumed to be on all of them: "a lower claim e counts if
// (views that contain e) + (N - V) >= q". Rule 3 of docs/internals/protocol.md
// says why equal digests, and sums and digests of more than the lower claims,
// do as well.
//
// Take nodes A, B and C, and a semaphore of two permits. A lists the lower claims
// x and y, B lists x, and C is silent. x is in two views, and y in one: with C,
// which might have either, both are at two nodes or more, and count. With the
// claim's own permit that makes three, so it waits. When A says that y has left, y
// can be at C alone and does not count any more: x and the claim fit.
//
// Only voting views whose content is known are used. Leaving a view out can
// only refuse a claim.
//
// A holder gets the answers one after another, and may not be able to compare a
// new view with an old one. But it still has the views with which it was last
// admitted, and claims only ever disappear from a view.
func (b ballot) fits() bool {
	if b.fitsNow() {
		return true
	}
	if b.s.phase != Holding {
		return false
	}
	b.swapAdmitted()
	defer b.swapAdmitted()
	return b.fitsNow()
}

// swapAdmitted swaps what is known now and what was known at the last
// admission.
func (b ballot) swapAdmitted() {
	for i := range b.s.peers {
		if m := b.s.peers[i].extraOrNil; m != nil {
			m.lowerSet, m.admittedSet = m.admittedSet, m.lowerSet
		}
	}
}

// saveAdmitted keeps the views that admit the claim now. It copies data for
// each node, so it is called only for counted claims: for others a vote is
// enough, and a vote stays.
func (b ballot) saveAdmitted() {
	if !b.s.Counting || !b.s.Sets.Met(b.votes) || !b.fitsNow() {
		return
	}
	for i := range b.s.peers {
		if m := b.s.peers[i].extraOrNil; m != nil {
			m.admittedSet = m.lowerSet
		}
	}
}

// fitsNow is fits judged by what is known now, in each of the sets.
func (b ballot) fitsNow() bool {
	return b.s.Sets.Each(b.fitsIn)
}

// fitsIn is fitsNow for one set of nodes.
func (b ballot) fitsIn(set uint32) bool {
	equal, sum := b.equalDigests(set)
	if equal >= protocol.NeedOf(set) && (b.s.newestLimit() == 0 || sum+b.s.Weight <= b.capacity()) {
		return true
	}
	if b.fitsBySum(set) {
		return true
	}
	for i := range b.s.peers {
		if v := b.s.peers[i].extra(); set&(1<<i) != 0 && v.listed && b.counted(set, v.from) {
			return true
		}
	}
	return false
}

// equalDigests returns how many usable voting views, at most, lie within one
// set that a node votes for, and the weight of that set: the lower claims, or
// all claims with votes. A node that lists the lower claims tells the totals of
// all as well.
func (b ballot) equalDigests(of uint32) (most int, sum uint64) {
	for i := range b.s.peers {
		if of&(1<<i) == 0 {
			continue
		}
		a := b.s.peers[i].extra()
		for _, set := range [2]totals{{a.sum, a.digest}, a.all} {
			same := 0
			for j := range b.s.peers {
				m := b.s.peers[j].extra()
				if of&b.votes&(1<<j) != 0 && m.known && (set == totals{m.sum, m.digest} || set == m.all) {
					same++
				}
			}
			if same > most || same == most && set.sum < sum {
				most, sum = same, set.sum
			}
		}
	}
	return most, sum
}

// differ reports whether the views are not all known to have the same content.
func (b ballot) differ() bool {
	all := b.s.Sets.All()
	same, _ := b.equalDigests(all)
	return same < bits.OnesCount32(b.s.exact(b.now)&all)
}

// fitsBySum can prove without any list that there is room: a claim that counts
// is in at least k = q - (N - V) of the V views, so all of them together weigh
// at most a k-th of what the views do.
func (b ballot) fitsBySum(set uint32) bool {
	views, sum := 0, uint64(0)
	for i := range b.s.peers {
		if m := b.s.peers[i].extra(); set&b.votes&(1<<i) != 0 && m.known {
			views++
			sum += m.sum
		}
	}
	k := protocol.NeedOf(set) - (bits.OnesCount32(set) - views)
	return views >= protocol.NeedOf(set) && k > 0 && b.s.Weight+sum/uint64(k) <= b.capacity()
}

// counted reports whether the lists show that there is room: the lists that
// begin at a ticket, and the lists of all claims. Of the claims before the
// lists only a total is known. That total always counts, but only once if two
// views have the same total.
func (b ballot) counted(set uint32, from protocol.Ticket) bool {
	type tally struct {
		views  int
		weight uint64
	}
	lower, bases, views := map[protocol.ID]tally{}, map[totals]bool{}, 0
	for i := range b.s.peers {
		v := b.s.peers[i].extra()
		if set&b.votes&(1<<i) == 0 || !v.listed || v.from != from && v.from != 0 {
			continue
		}
		views++
		bases[v.prefixTotals] = true
		for _, e := range v.lower {
			t, known := lower[e.ID]
			if !known || e.Weight < t.weight {
				t.weight = e.Weight // claims only ever get lighter: this view is the newer one
			}
			t.views++
			lower[e.ID] = t
		}
	}
	if views < protocol.NeedOf(set) {
		return false
	}
	total := b.s.Weight
	for base := range bases {
		total += base.sum
	}
	for _, t := range lower {
		if t.views+bits.OnesCount32(set)-views >= protocol.NeedOf(set) {
			total += t.weight
		}
	}
	return total <= b.capacity()
}

// deepenLists makes the next lists go back further if the older claims differ
// between the listed views of a quorum. For a holder all listed views must
// agree, since any node may go away and the others must still admit it.
func (b ballot) deepenLists() {
	if !b.s.Sets.Each(b.listsAgree) {
		b.s.listDepth = min(b.s.listDepth+1, fullDepth)
	}
}

// listsAgree reports whether lists that go back further would not help in a
// set.
func (b ballot) listsAgree(set uint32) bool {
	listed, same := b.comparable(set)
	need := protocol.NeedOf(set)
	if listed < need {
		return true
	}
	if b.s.phase == Holding {
		need = listed
	}
	return same >= need
}

// comparable returns how many voting views are listed, and the largest number
// of them that begin at the same ticket and have the same totals before it.
func (b ballot) comparable(set uint32) (listed, most int) {
	for i := range b.s.peers {
		same, v := 0, b.s.peers[i].extra()
		if set&b.votes&(1<<i) != 0 && v.listed {
			listed++
		}
		for j := range b.s.peers {
			m := b.s.peers[j].extra()
			if set&(1<<i) != 0 && set&b.votes&(1<<j) != 0 &&
				m.listed && v.from == m.from && v.prefixTotals == m.prefixTotals {
				same++
			}
		}
		most = max(most, same)
	}
	return listed, most
}

// capacity returns the number of permits according to the usable views: the
// least that may be in force (docs/internals/protocol.md, The record). Holders
// keep their permits, so for a holder it is the capacity it was admitted under.
func (b ballot) capacity() uint64 {
	if b.s.phase == Holding { //mutant:RuleKeep
		return b.s.admittedCapacity
	}
	if b.s.newestLimit() == 0 {
		return b.s.Capacity
	}
	agreed := b.agreed()
	n := b.s.Capacity
	if agreed != nil && agreed.limitAt > 0 {
		n = agreed.limit
	}
	for i := range b.s.peers {
		m := b.s.peers[i].extra()
		if b.s.peers[i].usable(b.s, b.now) && m.limitAt > 0 &&
			(agreed == nil || m.limitAt > agreed.limitAt) &&
			m.limit < n { //mutant:RuleMore
			n = m.limit
		}
	}
	return n
}

// Limit returns the known number of permits.
func (v *State) Limit(now protocol.Time) uint64 { return v.at(now).capacity() }

// agreed returns a view with the newest Resize that q usable views know of; nil
// while there are fewer views.
func (b ballot) agreed() *peerExtra {
	usable := b.s.exact(b.now)
	resized := func(i int) protocol.Ticket { return b.s.peers[i].extra().limitAt }
	at, ok := protocol.Reached(b.s.Sets, usable, resized)
	for i := range b.s.peers {
		if m := b.s.peers[i].extra(); ok && usable&(1<<i) != 0 && m.limitAt == at {
			return m
		}
	}
	return nil
}

// tooHeavy reports whether all views agree that there are fewer permits than
// the claim asks for.
func (b ballot) tooHeavy() bool {
	if b.s.newestLimit() == 0 {
		return false
	}
	agreed := b.agreed()
	if agreed == nil || agreed.limitAt == 0 || b.s.Weight <= agreed.limit {
		return false
	}
	for i := range b.s.peers {
		if p := &b.s.peers[i]; p.usable(b.s, b.now) && p.extra().limitAt != agreed.limitAt {
			return false
		}
	}
	return true
}
