package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

func TestFindHolder(t *testing.T) {
	t.Parallel()
	whoHolds(t, protocol.Rules{})
}

func whoHolds(t assert.TestingT, rules protocol.Rules) {
	a, b := protocol.Head{Known: true, Holder: "a"}, protocol.Head{Known: true, Holder: "b"}
	none, silent := protocol.Head{Known: true}, protocol.Head{}
	foreign := protocol.Head{Known: true, Foreign: time.Second}
	for _, c := range []struct {
		heads []protocol.Head
		want  protocol.HolderKind
		most  int
	}{
		{[]protocol.Head{none, none, none}, protocol.HeldByNone, 0},
		{[]protocol.Head{a, none, a}, protocol.HeldByClaim, 2},
		{[]protocol.Head{a, b, none}, protocol.HeldByNone, 1},
		{[]protocol.Head{a, none, silent}, protocol.HeldUnknown, 1},
		{[]protocol.Head{none, none, silent}, protocol.HeldByNone, 0},
		{[]protocol.Head{none, silent, silent}, protocol.HeldUnknown, 0},
		{[]protocol.Head{foreign, foreign, none}, protocol.HeldByForeign, 0},
		{[]protocol.Head{foreign, none, none}, protocol.HeldByNone, 0},
		{[]protocol.Head{a}, protocol.HeldByClaim, 1},
	} {
		kind, node, most := protocol.FindHolder(c.heads, protocol.Quorums{}, rules)
		assert.Equal(t, c.want, kind, "%v", c.heads)
		assert.Equal(t, c.most, most, "%v", c.heads)
		if kind == protocol.HeldByClaim {
			assert.Equal(t, "a", c.heads[node].Holder)
		}
	}
}
