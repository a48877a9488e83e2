package judge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/judge"
)

type hold = judge.Hold[string]

func TestOverlaps(t *testing.T) {
	t.Parallel()
	a, b := hold{Of: "a", From: 100, To: 200, Weight: 1}, hold{Of: "b", From: 200, To: 300, Weight: 1}
	assert.Empty(t, judge.Overlaps([]hold{b, a}, 1), "one after the other")
	b.From = 199
	found := judge.Overlaps([]hold{b, a}, 1)
	require.Len(t, found, 1)
	assert.Equal(t, judge.Overlap[string]{At: 199, Weight: 2, Holds: []hold{a, b}}, found[0])
	assert.Equal(t, "2 held at a time: b began 1ns before a ended", found[0].String())
	assert.Empty(t, judge.Overlaps([]hold{a, b}, 2))
	c := hold{Of: "c", From: 150, To: 151, Weight: 2}
	assert.Len(t, judge.Overlaps([]hold{a, b, c}, 2), 1, "weights are added up")
	assert.Len(t, judge.Overlaps([]hold{a, b, c}, 1), 2, "one for each beginning")
	alone := hold{Of: "d", From: 400, To: 500, Weight: 2}
	assert.Len(t, judge.Overlaps([]hold{alone}, 1), 1, "one hold alone may weigh too much")
}

// A hold that was over before its participant looked at the clock shows
// nothing, in every check.
func TestHoldsThatShowNothing(t *testing.T) {
	t.Parallel()
	a, over := hold{Of: "a", From: 100, To: 200, Weight: 1, Token: 5},
		hold{Of: "b", From: 150, To: 150, Weight: 1, Token: 1}
	for _, to := range []int64{150, 120} {
		over.To = to
		both := []hold{a, over}
		assert.Empty(t, judge.Overlaps(both, 1))
		assert.Empty(t, judge.Falls(both, 1))
		assert.Empty(t, judge.Overtakes(both, 1))
		weight, _ := judge.Peak(both)
		assert.EqualValues(t, 1, weight)
		assert.InDelta(t, 1, judge.Used(both, 1, 100, 200), 0)
	}
}

func TestPeak(t *testing.T) {
	t.Parallel()
	weight, at := judge.Peak([]hold{{From: 10, To: 20, Weight: 2}, {From: 15, To: 30, Weight: 3},
		{From: 40, To: 50, Weight: 4}, {From: 60, To: 70, Weight: 5}})
	assert.EqualValues(t, 5, weight)
	assert.EqualValues(t, 15, at, "for the first time")
}

func TestFalls(t *testing.T) {
	t.Parallel()
	a, b := hold{Of: "a", From: 100, To: 200, Weight: 1, Token: 7},
		hold{Of: "b", From: 200, To: 300, Weight: 1, Token: 8}
	assert.Empty(t, judge.Falls([]hold{b, a}, 1))
	b.Token = 7
	assert.Len(t, judge.Falls([]hold{a, b}, 1), 1, "the same token twice")
	b.Token = 6
	found := judge.Falls([]hold{b, a}, 1)
	require.Equal(t, []judge.Fall[string]{{Earlier: a, Later: b}}, found)
	assert.Equal(t, "b comes after a, and its token 6 is not above 7", found[0].String())
	assert.Empty(t, judge.Falls([]hold{a, b}, 2), "both could have been held together")
	low := hold{Of: "c", From: 150, To: 160, Weight: 1, Token: 9}
	last := hold{Of: "d", From: 400, To: 500, Weight: 1, Token: 8}
	assert.Len(t, judge.Falls([]hold{a, low, last}, 1),
		1, "the highest token so far counts, and not the last one")
}

// A writer that has become a reader is one claim with one token, which readers
// of its process join.
func TestFallsOfAClaimThatGoesOn(t *testing.T) {
	t.Parallel()
	const all = 10
	writer, reader := hold{From: 10, To: 20, Weight: all, Token: 5, Continued: true},
		hold{From: 20, To: 30, Weight: 1, Token: 5}
	assert.Empty(t, judge.Falls([]hold{writer, reader}, all))
	writer.Token = 6
	assert.Len(t, judge.Falls([]hold{writer, reader}, all), 1)
	writer.Token, writer.Continued = 5, false
	assert.Len(t, judge.Falls([]hold{writer, reader}, all), 1)
}

func TestOvertakes(t *testing.T) {
	t.Parallel()
	first, second := hold{Of: "1", From: 100, To: 200, Weight: 3, Token: 1},
		hold{Of: "2", From: 200, To: 300, Weight: 3, Token: 2}
	assert.Empty(t, judge.Overtakes([]hold{second, first}, 5), "in order")
	second.From, second.To = 50, 90
	assert.Equal(t, []hold{second}, judge.Overtakes([]hold{second, first}, 5),
		"the first one waited, and there was no room for both")
	assert.Empty(t, judge.Overtakes([]hold{second, first}, 6), "there was room for both")
	small := hold{Of: "3", From: 60, To: 70, Weight: 2, Token: 3}
	first.From = 10
	assert.Equal(t, []hold{second, small},
		judge.Overtakes([]hold{first, second, small}, 5), "all that are ahead count")
}

func TestUsed(t *testing.T) {
	t.Parallel()
	holds := []hold{{From: 0, To: 100, Weight: 1}, {From: 50, To: 200, Weight: 2}}
	assert.InDelta(t, 0.625, judge.Used(holds, 4, 50, 150), 0)
	assert.InDelta(t, 0.25, judge.Used(holds, 4, 0, 50), 0)
	assert.InDelta(t, 0, judge.Used(holds, 4, 200, 300), 0)
}
