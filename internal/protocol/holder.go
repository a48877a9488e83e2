package protocol

import (
	"math/bits"
	"time"
)

// This file owns the question which claim holds a name, as far as an onlooker
// can tell. Nothing is decided by the answer: it is for people and for
// monitoring. It may be out of date when it arrives, so no program may take a
// free name for its own.

// Head is what one node tells an onlooker of a name.
type Head struct {
	Known   bool          // the node has answered, and has forgotten no lease
	Holder  string        // the id of the claim that it votes for first; empty: of none
	Foreign time.Duration // how much longer another Redlock client's key lasts; 0: there is none
}

// HolderKind is the kind of a name's holder.
type HolderKind uint8

// The kinds of holder.
const (
	HeldByNone    HolderKind = iota // no claim can hold it
	HeldByClaim                     // a majority votes for a claim
	HeldByForeign                   // another Redlock client has a majority of the keys
	HeldUnknown                     // the nodes that are not known could make a claim its holder
)

// FindHolder returns the holder of a name of capacity 1 by what all nodes tell.
// For HeldByClaim it returns a node that votes for the claim. It also returns
// the most votes of any claim. The zero value of sets is a majority of all.
//
// While nodes are being exchanged a claim that has a majority of one set only
// may hold by a lease of before. So the holder is not known then.
//
// Invariant: a name is free only if the nodes that have not answered, or may
// have forgotten a lease, could make no claim its holder. Without the rule an
// onlooker that reaches one node of a holder takes the name for free.
func FindHolder(heads []Head, sets Quorums, rules Rules) (kind HolderKind, node, most int) {
	if sets == (Quorums{}) {
		sets = Majority(len(heads))
	}
	votes := map[string]uint32{}
	foreign, unknown := uint32(0), uint32(0)
	for i, h := range heads {
		if sets.All()&(1<<i) == 0 {
			continue
		}
		if !h.Known {
			unknown |= 1 << i
		}
		if h.Foreign > 0 {
			foreign |= 1 << i
		}
		if h.Holder == "" {
			continue
		}
		votes[h.Holder] |= 1 << i
		most = max(most, bits.OnesCount32(votes[h.Holder]))
		if sets.Met(votes[h.Holder]) {
			return HeldByClaim, i, most
		}
	}
	may := sets.Any(unknown)
	for _, v := range votes {
		may = may || sets.Any(v|unknown)
	}
	switch {
	case sets.Met(foreign):
		return HeldByForeign, 0, most
	case may && rules.on(RuleUnknown):
		return HeldUnknown, 0, most
	}
	return HeldByNone, 0, most
}
