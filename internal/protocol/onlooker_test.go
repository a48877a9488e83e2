package protocol_test

import (
	"slices"
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
	a, b := protocol.Head{Known: true, Voted: []string{"a"}}, protocol.Head{Known: true, Voted: []string{"b"}}
	ab, ca := protocol.Head{Known: true, Voted: []string{"a", "b"}}, protocol.Head{Known: true, Voted: []string{"c", "a"}}
	none, silent := protocol.Head{Known: true}, protocol.Head{}
	foreign := protocol.Head{Known: true, Foreign: time.Second}
	for _, c := range []struct {
		heads []protocol.Head
		want  protocol.HolderKind
		most  int
		n     int // holders
	}{
		{[]protocol.Head{none, none, none}, protocol.HeldByNone, 0, 0},
		{[]protocol.Head{a, none, a}, protocol.HeldByClaim, 2, 1},
		{[]protocol.Head{a, b, none}, protocol.HeldByNone, 1, 0},
		{[]protocol.Head{a, none, silent}, protocol.HeldUnknown, 1, 0},
		{[]protocol.Head{none, none, silent}, protocol.HeldByNone, 0, 0},
		{[]protocol.Head{none, silent, silent}, protocol.HeldUnknown, 0, 0},
		{[]protocol.Head{foreign, foreign, none}, protocol.HeldByForeign, 0, 0},
		{[]protocol.Head{foreign, none, none}, protocol.HeldByNone, 0, 0},
		{[]protocol.Head{a}, protocol.HeldByClaim, 1, 1},
		{[]protocol.Head{ab, ab, none}, protocol.HeldByClaim, 2, 2},
		{[]protocol.Head{b, ca, ab}, protocol.HeldByClaim, 2, 2},
		{[]protocol.Head{b, ca, none}, protocol.HeldByNone, 1, 0},
		{[]protocol.Head{b, ca, silent}, protocol.HeldUnknown, 1, 0},
	} {
		f := protocol.FindHolder(c.heads, protocol.Quorums{}, rules)
		assert.Equal(t, c.want, f.Kind, "%v", c.heads)
		assert.Equal(t, c.most, f.Most, "%v", c.heads)
		assert.Equal(t, c.n, f.Holders, "%v", c.heads)
		if f.Kind == protocol.HeldByClaim && assert.Less(t, f.Claim, len(c.heads[f.Node].Voted)) {
			holder := c.heads[f.Node].Voted[f.Claim]
			votes := 0
			for _, h := range c.heads {
				if slices.Contains(h.Voted, holder) {
					votes++
				}
			}
			assert.Greater(t, votes, len(c.heads)/2, "%v: %s", c.heads, holder)
		}
	}
}
