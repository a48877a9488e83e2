package lease

import (
	"github.com/quorate/quorate/internal/protocol"
	"math/bits"
	"slices"
	"time"
)

// This file owns the question which claim holds a name, as far as an onlooker
// can tell. Nothing is decided by the answer: it is for people and for
// monitoring. It may be out of date when it arrives, so no program may take a
// free name for its own.

// Head is what one node tells an onlooker of a name.
type Head struct {
	Known   bool          // the node has answered, and has forgotten no lease
	Voted   []string      // the ids of the claims that it votes for, in the order of its queue
	Foreign time.Duration // how much longer another Redlock client's key lasts; 0: there is none
}

type HolderKind uint8

const (
	HeldByNone    HolderKind = iota // no claim can hold it
	HeldByClaim                     // a majority votes for a claim
	HeldByForeign                   // another Redlock client has a majority of the keys
	HeldUnknown                     // the nodes that are not known could make a claim its holder
)

// Found is what an onlooker makes of the heads.
type Found struct {
	Kind    HolderKind
	Node    int // HeldByClaim: a node that votes for the holder
	Claim   int // HeldByClaim: which of the node's votes that is
	Holders int // claims with a majority: more than one if the name is shared
	Most    int // the most votes of any claim
}

// FindHolder returns the holder of a name by what all nodes tell. If claims
// share the name, it is one that no other holder precedes in the queue of the
// node that it names.
//
// While nodes are being exchanged a claim that has a majority of one set only
// may hold by a lease of before. So the holder is not known then.
// Invariant: a name is free only if the nodes that have not answered, or may
// have forgotten a lease, could make no claim its holder.
func FindHolder(heads []Head, sets protocol.Quorums) (f Found) {
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
		for _, claim := range h.Voted {
			votes[claim] |= 1 << i
		}
	}
	may := sets.Any(unknown)
	for _, v := range votes {
		f.Most = max(f.Most, bits.OnesCount32(v))
		may = may || sets.Any(v|unknown)
		if sets.Met(v) {
			f.Holders++
		}
	}
	switch {
	case f.Holders > 0:
		f.Kind = HeldByClaim
		for f.Node = range heads {
			f.Claim = slices.IndexFunc(heads[f.Node].Voted, func(claim string) bool { return sets.Met(votes[claim]) })
			if f.Claim >= 0 {
				break
			}
		}
	case sets.Met(foreign):
		f.Kind = HeldByForeign
	case may: //mutant:RuleUnknown
		f.Kind = HeldUnknown
	}
	return f
}
