package lease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

func TestFindHolder(t *testing.T) {
	t.Parallel()
	whoHolds(t)
}

func whoHolds(t assert.TestingT) {
	a, b := lease.Head{Known: true, Voted: []string{"a"}}, lease.Head{Known: true, Voted: []string{"b"}}
	ab, ca := lease.Head{Known: true, Voted: []string{"a", "b"}},
		lease.Head{Known: true, Voted: []string{"c", "a"}}
	none, silent := lease.Head{Known: true}, lease.Head{}
	foreign := lease.Head{Known: true, Foreign: time.Second}
	for _, c := range []struct {
		heads []lease.Head
		want  lease.HolderKind
		most  int
		n     int // holders
	}{
		{[]lease.Head{none, none, none}, lease.HeldByNone, 0, 0},
		{[]lease.Head{a, none, a}, lease.HeldByClaim, 2, 1},
		{[]lease.Head{a, b, none}, lease.HeldByNone, 1, 0},
		{[]lease.Head{a, none, silent}, lease.HeldUnknown, 1, 0},
		{[]lease.Head{none, none, silent}, lease.HeldByNone, 0, 0},
		{[]lease.Head{none, silent, silent}, lease.HeldUnknown, 0, 0},
		{[]lease.Head{foreign, foreign, none}, lease.HeldByForeign, 0, 0},
		{[]lease.Head{foreign, none, none}, lease.HeldByNone, 0, 0},
		{[]lease.Head{a}, lease.HeldByClaim, 1, 1},
		{[]lease.Head{ab, ab, none}, lease.HeldByClaim, 2, 2},
		{[]lease.Head{b, ca, ab}, lease.HeldByClaim, 2, 2},
		{[]lease.Head{b, ca, none}, lease.HeldByNone, 1, 0},
		{[]lease.Head{b, ca, silent}, lease.HeldUnknown, 1, 0},
	} {
		f := lease.FindHolder(c.heads, protocol.Majority(len(c.heads)))
		assert.Equal(t, c.want, f.Kind, "%v", c.heads)
		assert.Equal(t, c.most, f.Most, "%v", c.heads)
		assert.Equal(t, c.n, f.Holders, "%v", c.heads)
		if f.Kind == lease.HeldByClaim && assert.Less(t, f.Claim, len(c.heads[f.Node].Voted)) {
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
