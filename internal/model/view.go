package model

// This file owns what an answer tells of a claim: its vote, and the claims
// below it.
//
// Invariant: what an answer tells of the lower claims is all of them or more,
// never less. A client that counts claims from it may refuse for nothing, and
// never admits one too many.

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// waitHintDepth is how many waiters ahead still allow a guess at when to ask
// again.
const waitHintDepth = 8

// answer describes the claim i and its view: the claims with votes below it. A
// list holds those from the ticket from on, and totals stand for those below
// from.
func (v *visit) answer(i int, list bool, from protocol.Ticket) protocol.Answer {
	c := &v.claims[i]
	asked := list && c.Voted
	list = asked && v.listable(c, from)
	a := protocol.Answer{Status: protocol.OK, Incarnation: v.incarnation, Ticket: c.Ticket, Vote: c.Voted}
	if v.resized() {
		a.Limit, a.LimitAt = v.limit, v.limitAt
	}
	for j, o := range v.claims {
		a.Waiters = a.Waiters || (j != i && !o.Voted)
	}
	// The totals of the voted claims tell what lies below the last of them, and
	// below no other without a walk. Where the list is too long for that they
	// tell more: what lies above as well.
	last := c.Voted && (i+1 == len(v.claims) || !v.claims[i+1].Voted)
	if a.HasTotals, a.Listed = last || list, list; a.HasTotals {
		for _, o := range v.claims[:i] {
			a.Sum, a.Digest = a.Sum+o.Weight, (a.Digest+o.ID.Digest())%protocol.DigestMod
			switch {
			case list && o.Ticket >= from:
				a.Lower = append(a.Lower, protocol.Lower{ID: o.ID, Weight: o.Weight})
			case list:
				a.BaseSum, a.BaseDigest = a.BaseSum+o.Weight, (a.BaseDigest+o.ID.Digest())%protocol.DigestMod
			}
		}
	}
	if asked {
		v.all(&a, i)
	}
	if !c.Voted {
		a.Rank = i
		a.Wait, a.Foreign = v.wait(i)
		a.Barred = i > 0 && v.hasRedlockKey() && !v.claims[0].Voted
	}
	return a
}

// all adds the totals of all claims with votes but claim i to an answer to a
// request for a list. Where there is no list they stand for the lower claims.
// Without them two nodes, of which one has too long a list, never tell of the
// same set, and the claim waits though there is room.
func (v *visit) all(a *protocol.Answer, i int) {
	var sum, digest uint64
	for j, o := range v.claims {
		if o.Voted && j != i {
			sum, digest = sum+o.Weight, (digest+o.ID.Digest())%protocol.DigestMod
		}
	}
	switch {
	case a.Listed && v.off(AllTotals):
		a.AllSum, a.AllDigest = a.Sum, a.Digest
	case a.Listed:
		a.AllSum, a.AllDigest = sum, digest
	case !a.HasTotals && !v.off(Totals):
		a.HasTotals, a.Sum, a.Digest = true, sum, digest
	}
}

// wait guesses when asking again may help the unvoted claim i, and reports
// whether another client's redlock key is all that blocks it. A guess that is
// too late costs time only: a vote comes by a push, too.
func (v *visit) wait(i int) (time.Duration, bool) {
	until, ahead := int64(0), 0
	if v.hasRedlockKey() {
		if i == 0 { // unvoted head: the redlock key is another's
			if v.plainEnd == forGood {
				return 0, true
			}
			return v.rest(v.plainEnd), true
		}
	} else {
		until = slices.MinFunc(v.claims, func(a, b Claim) int { return cmp.Compare(a.Expiry, b.Expiry) }).Expiry
		if v.droppedUpTo > 0 {
			until = v.now
		}
	}
	for _, c := range v.claims[:i] {
		if !c.Voted {
			ahead++
		}
		if !c.Voted || v.hasRedlockKey() {
			until = max(until, c.Expiry)
		}
	}
	if ahead > waitHintDepth {
		return 0, false
	}
	return v.rest(until), false
}

// rest is the hint of an answer: how long it takes until end, 1 ms at least: 0
// means that there is no hint.
func (v *visit) rest(end int64) time.Duration {
	return time.Duration(max(1, end-v.now)) * time.Millisecond
}
