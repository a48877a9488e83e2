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
		kind, node, most := protocol.FindHolder(c.heads, rules)
		assert.Equal(t, c.want, kind, "%v", c.heads)
		assert.Equal(t, c.most, most, "%v", c.heads)
		if kind == protocol.HeldByClaim {
			assert.Equal(t, "a", c.heads[node].Holder)
		}
	}
}

func TestWallClockThatAMajorityContradicts(t *testing.T) {
	t.Parallel()
	wallClock(t, protocol.Rules{})
	assert.Equal(t, 12*time.Second, protocol.WallAllowed(time.Second, 40*time.Second, 8*time.Second))
	assert.Equal(t, 30*time.Second, protocol.WallAllowed(30*time.Second, 40*time.Second, 8*time.Second))
}

func wallClock(t assert.TestingT, rules protocol.Rules) {
	const s = time.Second
	type reading struct{ low, top time.Duration }
	right, ahead, further, behind := reading{-s, s}, reading{3 * s, 4 * s}, reading{5 * s, 6 * s}, reading{-4 * s, -3 * s}
	for _, c := range []struct {
		readings []reading
		want     protocol.WallVerdict
		by       time.Duration
	}{
		{[]reading{right}, protocol.WallOpen, 0},
		{[]reading{right, right}, protocol.WallRight, 0},
		{[]reading{ahead}, protocol.WallOpen, 0},
		{[]reading{ahead, behind}, protocol.WallOpen, 0},
		{[]reading{ahead, right, right}, protocol.WallRight, 0},
		{[]reading{further, ahead}, protocol.WallWrong, 3 * s},
		{[]reading{behind, right, behind}, protocol.WallWrong, -3 * s},
		{[]reading{{s, 9 * s}, {s, 9 * s}}, protocol.WallRight, 0}, // it may be right
	} {
		w := protocol.NewWallComparison(3, 2*s, rules)
		var got protocol.WallVerdict
		for _, r := range c.readings {
			got = w.Take(r.low, r.top)
		}
		assert.Equal(t, c.want, got, "%v", c.readings)
		if got == protocol.WallWrong && c.want == got {
			by, nodes := w.Wrong()
			assert.Equal(t, c.by, by)
			assert.Equal(t, 2, nodes)
		}
	}
}
