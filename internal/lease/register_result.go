package lease

import (
	"math"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what an operation on a record has found.

// Newest returns the newest that any node has shown.
func (q *RegisterOp) Newest() protocol.Stored { return q.newest }

// Left returns how much is left of the lease of the claim that has recorded the
// newest, as a majority sees it, and whether that is certain: while some nodes
// have not answered, a claim that too few are known to hold may be held all the
// same.
func (q *RegisterOp) Left() (left time.Duration, certain bool) {
	left, certain = math.MaxInt64, true
	// While both sets count a claim is held only by a majority of each. So it
	// has ended when one of them shows that, and what is left is the shorter of
	// the two.
	for _, set := range q.sets().Sets() {
		if set == 0 {
			continue
		}
		switch l, ok := q.leftIn(set); {
		case ok && l == 0:
			return 0, true
		default:
			left, certain = min(left, l), certain && ok
		}
	}
	return left, certain
}

// leftIn is Left for one set of nodes.
func (q *RegisterOp) leftIn(set uint32) (left time.Duration, certain bool) {
	var lefts []time.Duration
	dead := uint32(0)
	for i := range q.peers {
		p := &q.peers[i]
		switch {
		case set&(1<<i) == 0 || !p.answered:
		case p.entry.Version.Run(q.newest.Version) == 0 && p.entry.Left > 0:
			lefts = append(lefts, p.entry.Left)
		default:
			dead |= 1 << i
		}
	}
	switch {
	// The lease as a majority has it is the q-th longest. Where so many have
	// dropped the claim, or never had it, that the others are no majority, it
	// has ended, whatever these say.
	case len(lefts) >= protocol.NeedOf(set):
		return nthLongest(lefts, protocol.NeedOf(set)), true
	case !protocol.Most(set, ^dead):
		return 0, true
	case len(lefts) == 0:
		return 0, false
	}
	return slices.Min(lefts), false
}

// Adopt is rule 1 of the record. A value that a minority has may have been
// reported to a caller, or may be found by no later run. To put it again under
// this run's version decides that: from then on each run finds it. Adopt
// returns what an open has found and fewer than a majority are known to have:
// it is to be put under the new run's version before any caller gets it.
func (q *RegisterOp) Adopt() (protocol.Stored, bool) {
	have := uint32(0)
	for i := range q.peers {
		if p := &q.peers[i]; p.answered && p.entry.Version == q.newest.Version {
			have |= 1 << i
		}
	}
	s := q.newest
	s.Version = protocol.Version{Ticket: q.Stored.Ticket, ID: q.Stored.ID}
	return s, q.newest.Version != protocol.Version{} && !q.sets().Met(have) && q.Rules.On(protocol.RuleAdopt)
}

// nthLongest returns the n-th longest of some durations, n counted from 1.
func nthLongest(ds []time.Duration, n int) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)-n]
}
