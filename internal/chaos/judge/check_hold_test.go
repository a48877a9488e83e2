package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held is a made-up operation that was answered at once.
func held(op string, weight int64, token uint64, from, to int64) *Operation {
	return &Operation{Op: op, Name: "n", Weight: weight, Token: token, Call: from - 5,
		Begin: from, Until: to + 100, End: to}
}

func TestOverlaps(t *testing.T) {
	a, b := held("a", 1, 1, 100, 200), held("b", 1, 2, 200, 300)
	assert.Empty(t, overlaps([]*Operation{b, a}, 1), "one after the other")
	b.Begin = 199
	found := overlaps([]*Operation{a, b}, 1)
	require.Len(t, found, 1)
	assert.Equal(t, []*Operation{a, b}, found[0].Ops)
	assert.Empty(t, overlaps([]*Operation{a, b}, 2))
	assert.Len(t, overlaps([]*Operation{a, b, held("c", 2, 3, 150, 151)}, 2), 1, "weights are added up")
}

// A client that was killed or stopped is held to what it last knew.
func TestOverlapsOfTheDead(t *testing.T) {
	killed := &Operation{Op: "a", Name: "n", Weight: 1, Call: 90, Begin: 100, Until: 200}
	assert.Len(t, overlaps([]*Operation{killed, held("b", 1, 2, 199, 300)}, 1), 1)
	assert.Empty(t, overlaps([]*Operation{killed, held("b", 1, 2, 200, 300)}, 1))
	stopped := &Operation{Op: "a", Name: "n", Weight: 1, Call: 90, Begin: 100, Until: 200, End: 500}
	assert.Empty(t, overlaps([]*Operation{stopped, held("b", 1, 2, 200, 300)}, 1),
		"it sees the end too late, but has not been promised more")
	early := &Operation{Op: "a", Name: "n", Weight: 1, Call: 90, Begin: 100, Until: 0,
		Seen: 150, End: 180, Lost: true}
	assert.Empty(t, overlaps([]*Operation{early, held("b", 1, 2, 150, 300)}, 1),
		"its validity was taken back at some time after it was last seen")
	assert.Len(t, overlaps([]*Operation{early, held("b", 1, 2, 149, 300)}, 1), 1)
	asleep := &Operation{Op: "a", Name: "n", Weight: 1, Call: 90, Begin: 250, Until: 200, End: 500}
	assert.Empty(t, overlaps([]*Operation{asleep, held("b", 1, 2, 200, 300)}, 1),
		"its hold was over before it looked")
}

func TestFalling(t *testing.T) {
	const exclusive = 1 << 30
	a, b := held("a", 1, 7, 100, 200), held("b", 1, 8, 200, 300)
	assert.Empty(t, falling([]*Operation{a, b}, 1))
	b.Token = 7
	assert.Len(t, falling([]*Operation{a, b}, 1), 1, "the same token twice")
	b.Token = 6
	assert.Len(t, falling([]*Operation{b, a}, 1), 1)
	assert.Empty(t, falling([]*Operation{a, b}, 2), "they do not conflict")
	writer, reader := held("w", exclusive, 5, 10, 20), held("r", 1, 5, 20, 30)
	writer.Shrunk, reader.After = true, "w"
	assert.Empty(t, falling([]*Operation{writer, reader}, exclusive))
	writer.Token = 6
	assert.Len(t, falling([]*Operation{writer, reader}, exclusive), 1)
}

// A token far from the time is found.
func TestAstray(t *testing.T) {
	const (
		epoch = int64(1e18)
		year  = 365 * 24 * time.Hour
	)
	hold := func(off time.Duration) *Operation {
		begin := int64(time.Hour)
		return &Operation{Name: "n", Token: uint64((epoch+begin+int64(off))/1000) << 10, Begin: begin,
			Until: begin + 5, End: begin + 5}
	}
	for off, want := range map[time.Duration]int{0: 0, 2 * time.Second: 0, -11 * time.Second: 0,
		10 * time.Minute: 1, -10 * time.Minute: 1, year: 1, -year: 1} {
		assert.Len(t, astray([]*Operation{hold(off)}, epoch, 2*time.Second), want, "%v", off)
	}
}

// A client that asks gets no term that is over, and none that has not begun.
func TestMistaken(t *testing.T) {
	terms := []*Operation{held("a", 1, 7, 100, 200), held("b", 1, 8, 210, 300)}
	told := func(token uint64, from, to int64) int {
		return len(mistaken(terms, []Sighting{{From: from, To: to, Token: token}}))
	}
	assert.Zero(t, told(7, 100, 250), "the answer was under way as the next one began")
	assert.Equal(t, 1, told(7, 211, 250))
	assert.Zero(t, told(8, 150, 200))
	assert.Equal(t, 1, told(8, 150, 199), "the one before still leads")
}
