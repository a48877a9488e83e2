package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// made makes a profile of stacks, the caller first. Names with blanks between
// them are inlined: they have one location.
func made(stacks map[string]int64) *profile.Profile {
	p := &profile.Profile{}
	for stack, n := range stacks {
		s := &profile.Sample{Value: []int64{n, n * 10_000_000}}
		for inlined := range strings.SplitSeq(stack, ";") {
			at := &profile.Location{}
			for name := range strings.SplitSeq(inlined, " ") {
				at.Line = append([]profile.Line{{Function: &profile.Function{Name: name}}}, at.Line...)
			}
			s.Location = append([]*profile.Location{at}, s.Location...)
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

var small = map[string]int64{
	"runtime.goexit;main.(*team).client " +
		"github.com/quorate/quorate/mutex.(*Mutex).Lock;github.com/quorate/quorate/internal/transport.(*conn).writeOnce;net.(*conn).Write;internal/runtime/syscall/linux.Syscall6": 600,
	"runtime.goexit;main.(*team).client github.com/quorate/quorate/mutex.(*Mutex).Lock": 200,
	"runtime.mcall;runtime.findRunnable":                                                196,
	"rare/path.f":                                                                       1,
	"rare.g":                                                                            1,
	"rare.h[example.org/x.T]":                                                           2,
	"runtime.mcall":                                                                     1000,
}

func TestFlame(t *testing.T) {
	frames := FlameOf(made(small))
	want := []Frame{
		{0, 2000, otherCode, "all"},
		{1, 800, otherCode, "main.(*team).client"},
		{2, 800, libraryCode, "mutex.(*Mutex).Lock"},
		{3, 600, libraryCode, "transport.(*conn).writeOnce"},
		{4, 600, systemCode, "net.(*conn).Write"},
		{5, 600, systemCode, "linux.Syscall6"},
		{1, 1196, runtimeCode, "runtime.mcall"},
		{2, 196, runtimeCode, "runtime.findRunnable"},
	}
	require.Equal(t, want, frames, "what is rare is too narrow to be seen, together, too")

	few := map[string]int64{"main.a": 985}
	for i := range 15 {
		few[fmt.Sprintf("main.b%d", i)] = 1
	}
	require.Equal(t, []Frame{{0, 1000, otherCode, "all"}, {1, 985, otherCode, "main.a"},
		{1, 15, otherCode, merged}}, FlameOf(made(few)))

	require.Nil(t, FlameOf(made(nil)))
	require.Equal(t, "process.(*Queue[…]).Take",
		short("example.org/process.(*Queue[go.shape.*example.org/x.T]).Take"))
}

// A stack that is too deep ends at the highest row, which has its samples.
func TestFlameIsNotTooHigh(t *testing.T) {
	frames := FlameOf(made(map[string]int64{strings.Repeat("main.f;", 100) + "main.f": 10}))
	require.Len(t, frames, maxFrames)
	require.Equal(t, Frame{maxFrames - 1, 10, otherCode, "main.f"}, frames[maxFrames-1])
}

func TestFlameAsJSON(t *testing.T) {
	frames := []Frame{{0, 10, otherCode, "all"}, {12, 7, runtimeCode, "f[go.shape.struct { X int }]"}}
	text, err := json.Marshal(frames)
	require.NoError(t, err)
	require.Equal(t, `["0 10 other all","12 7 runtime f[go.shape.struct { X int }]"]`, string(text))
	var again []Frame
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, frames, again)
	require.Error(t, json.Unmarshal([]byte(`["0 10"]`), &again))
	require.Error(t, json.Unmarshal([]byte(`["a 10 other all"]`), &again))
}

// Equal profiles give equal pictures, that are well-formed, stay within their
// size, and have as much for each frame as it has samples.
func TestDrawFlame(t *testing.T) {
	for _, theme := range themes {
		svg := drawFlame("1 client, N=1", FlameOf(made(small)), theme)
		for range 5 { // made ranges over a map, so the samples come in any order
			require.Equal(t, string(svg), string(drawFlame("1 client, N=1", FlameOf(made(small)), theme)))
		}
		type box struct {
			X     float64 `xml:"x,attr"`
			Y     float64 `xml:"y,attr"`
			Width float64 `xml:"width,attr"`
		}
		var drawn struct {
			Height float64 `xml:"height,attr"`
			Frames []struct {
				Title string `xml:"title"`
				Rect  box    `xml:"rect"`
				Text  string `xml:"text"`
			} `xml:"g"`
		}
		require.NoError(t, xml.Unmarshal(svg, &drawn))
		require.Len(t, drawn.Frames, 8)
		for _, f := range drawn.Frames {
			require.GreaterOrEqual(t, f.Rect.Y, 0.0+flameHead)
			require.LessOrEqual(t, f.Rect.Y+flameRow, drawn.Height)
			require.LessOrEqual(t, f.Rect.X+f.Rect.Width, 0.0+flameWidth)
		}
		lock, mcall := drawn.Frames[2], drawn.Frames[6]
		require.Equal(t, "mutex.(*Mutex).Lock: 800 samples, 40.0%", lock.Title)
		require.Equal(t, "mutex.(*Mutex).Lock", lock.Text)
		require.InDelta(t, 400, lock.Rect.Width, 1)
		require.InDelta(t, 400, mcall.Rect.X, 0.01, "behind its neighbour")
		require.Equal(t, drawn.Height-2*flameRow, mcall.Rect.Y)
		require.Contains(t, string(svg), "#")
		require.NotContains(t, string(svg), "NaN")
	}
	light, dark := drawFlame("", FlameOf(made(small)), themes[0]), drawFlame("", FlameOf(made(small)), themes[1])
	require.NotEqual(t, string(light), string(dark))
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name    string
		letters int
		want    string
	}{
		{"runtime.mcall", 13, "runtime.mcall"},
		{"runtime.mcall", 12, "mcall"},
		{"runtime.mcall", 4, "mca…"},
		{"runtime.mcall", 3, ""},
		{"runtime.mcall", -1, ""},
		{"transport.(*conn).writeOnce", 20, "writeOnce"},
		{"process.(*Queue[…]).Take", 20, "Take"},
		{"main.(*team).run.func1", 10, "run.func1"},
		{"indexbytebody", 6, "index…"},
		{merged, 1, merged},
		{merged, 0, ""},
	} {
		require.Equal(t, c.want, fit(c.name, c.letters), "%s, %d", c.name, c.letters)
	}
}
