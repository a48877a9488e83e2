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
		w := protocol.NewWallComparison(protocol.Majority(3), 2*s, rules)
		var got protocol.WallVerdict
		for i, r := range c.readings {
			got = w.Take(i, r.low, r.top)
		}
		assert.Equal(t, c.want, got, "%v", c.readings)
		if got == protocol.WallWrong && c.want == got {
			by, nodes := w.Wrong()
			assert.Equal(t, c.by, by)
			assert.Equal(t, 2, nodes)
		}
	}
}

// The first node that comes up has wall clocks compared. Those that come up
// next are asked at once, too.
func TestWallClockOfLateNodes(t *testing.T) {
	t.Parallel()
	wallOfLateNodes(t, protocol.Rules{})
}

func wallOfLateNodes(t assert.TestingT, rules protocol.Rules) {
	c := protocol.NewClient(protocol.ClientConfig{
		Nodes: 3, TTL: aTTL, NodeTimeout: aTimeout, Guard: guardTime, WallAllowed: time.Second, Wall: func() protocol.Ticket { return wall }, Rules: rules,
	})
	now := protocol.Time(time.Second)
	begun, asked := false, uint32(0)
	take := func(do []protocol.Action) {
		for _, a := range do {
			if a.Kind == protocol.ActWall { // a node that is not up is not asked
				begun, asked = true, asked|a.Nodes&0b001
				if begun && a.Nodes != 0b111 {
					asked |= a.Nodes
				}
			}
		}
	}
	up := func(node int) {
		take(c.Up(now, node))
	}
	up(0)
	take(c.Tick(now))
	assert.True(t, begun)
	up(1)
	up(2)
	assert.EqualValues(t, 0b111, asked)
	assert.Empty(t, c.WallTime(now, 1, 1, int64(wall)/1000-100_000))
	assert.NotEmpty(t, c.WallTime(now, 2, 1, int64(wall)/1000-100_000))
	assert.NotNil(t, c.WallWrong())
}

// A comparison that nodes do not answer ends, and another one follows.
func TestWallClockOfSilentNodes(t *testing.T) {
	t.Parallel()
	wallOfSilentNodes(t, protocol.Rules{})
}

func wallOfSilentNodes(t assert.TestingT, rules protocol.Rules) {
	c := protocol.NewClient(protocol.ClientConfig{
		Nodes: 3, TTL: aTTL, NodeTimeout: aTimeout, Guard: guardTime, WallAllowed: time.Second, Wall: func() protocol.Ticket { return wall }, Rules: rules,
	})
	now, begun := protocol.Time(time.Second), 0
	for range 30 {
		for _, a := range c.Tick(now) {
			if a.Kind == protocol.ActWall {
				begun++
				c.WallTime(now, 0, a.Try, int64(wall)/1000)
			}
		}
		now = now.Add(time.Second)
	}
	assert.GreaterOrEqual(t, begun, 2)
}
