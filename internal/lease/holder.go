package lease

import (
	"github.com/quorate/quorate/internal/protocol"
	"math/bits"
	"slices"
	"time"
)

// Which claim holds a name, as far as an onlooker can tell. Nothing is decided
// by the answer: it is for people and for monitoring. It may be out of date
// when it arrives, so a program must not conclude that it holds a name that is
// reported as free.

// Head is what one node tells an onlooker about a name.
type Head struct {
	Known   bool          // the node has answered, and cannot have forgotten a lease
	Voted   []string      // the ids of the claims that it votes for, in the order of its queue
	Foreign time.Duration // how much longer another Redlock client's key lasts; 0: there is none
}

// HolderKind says what kind of holder a name has.
type HolderKind uint8

const (
	HeldByNone    HolderKind = iota // no claim can hold the name
	HeldByClaim                     // a majority votes for a claim
	HeldByForeign                   // another Redlock client has a majority of the keys
	HeldUnknown                     // the votes of the unknown nodes could make a claim the holder
)

// Found is what FindHolder has found.
type Found struct {
	Kind    HolderKind
	Node    int // HeldByClaim: a node that votes for the holder
	Claim   int // HeldByClaim: which of the node's votes that is
	Holders int // claims with a majority: more than one if the name is shared
	Most    int // the most votes of any claim
}

// FindHolder returns who holds a name, judging by the answers of all nodes. It
// returns a claim with a majority of votes in each set. If several share the
// name it returns the one first in the queue of node Found.Node. Example: nodes
// A and B vote for x, C is silent: x holds. Only A votes for x and C is silent:
// HeldUnknown, as C's vote could make x the holder.
//
// During an exchange, a majority of only one set is HeldUnknown too: x may
// still hold by a lease from before the exchange.
// Invariant: a name is reported as free only if the nodes that have not
// answered, or may have forgotten a lease, could not make any claim its holder.
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
			f.Claim = slices.IndexFunc(heads[f.Node].Voted,
				func(claim string) bool { return sets.Met(votes[claim]) })
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
