package core

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
)

// An id shows the kind of its claim, and the kind changes neither the digest
// nor the residue. Ids of older versions show no kind.
func TestKindOfAClaim(t *testing.T) {
	for _, kind := range kinds {
		plain := peers.NewID()
		id := markKind(plain, kind)
		assert.Equal(t, kind, KindOf(id.String()))
		assert.Equal(t, plain.Digest(), id.Digest())
		assert.Equal(t, plain.Residue(), id.Residue())
	}
	plain := peers.NewID()
	assert.Equal(t, plain, markKind(plain, "of a later version"))
	later := markKind(plain, "mutex")
	later[kindAt+2] = byte(len(kinds))
	for _, id := range []string{"", "x", strings.Repeat("x", 32), protocol.ID{}.String(),
		later.String(), later.String()[:30]} {
		assert.Empty(t, KindOf(id), id)
	}
}
