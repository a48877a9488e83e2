package core

import (
	"encoding/hex"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// kinds are the kinds of primitives, as Spec.Kind has them. A claim's id tells
// its kind by the place in this list, so new ones go to its end.
var kinds = []string{"mutex", "rwmutex", "semaphore", "once", "leader", "period", "flight", "shards"}

// The kind of a claim is in three bytes of its id that nothing else reads:
// digests use the first seven, the residue the last. The other 104 bits are
// random. No decision depends on the kind. Another version's claim, whose id is
// wholly random, shows a wrong kind once in two million claims.
const (
	kindAt    = 12
	kindMark1 = 0x51
	kindMark2 = 0x6b
)

// markKind returns the id with the kind of its claim.
func markKind(id protocol.ID, kind string) protocol.ID {
	if i := slices.Index(kinds, kind); i >= 0 {
		id[kindAt], id[kindAt+1], id[kindAt+2] = kindMark1, kindMark2, byte(i)
	}
	return id
}

// KindOf returns the kind of the primitive that made a claim, by the claim's id
// as the nodes store it; "" if the id does not tell.
func KindOf(id string) string {
	var b protocol.ID
	if n, err := hex.Decode(b[:], []byte(id[:min(len(id), 2*len(b))])); err != nil || n < len(b) {
		return ""
	}
	if b[kindAt] != kindMark1 || b[kindAt+1] != kindMark2 || int(b[kindAt+2]) >= len(kinds) {
		return ""
	}
	return kinds[b[kindAt+2]]
}
