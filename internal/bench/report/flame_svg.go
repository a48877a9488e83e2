package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// The sizes of an unscaled flame graph in pixels.
const (
	flameWidth  = 1000
	flameHead   = 58 // title and legend
	flameRow    = 18
	flameLetter = 7.0 // the width of a letter, slightly overestimated
)

// ink is the colours of a kind of frame.
type ink struct {
	kind, meaning string
	light, dark   color.Color
}

// The colours can be distinguished by colour-blind readers, and the text of
// their theme is legible on all of them.
var inks = []ink{
	{libraryCode, "quorate", rgb(0x9ecbff), rgb(0x1f5fa8)},
	{systemCode, "system calls and net", rgb(0xffc58f), rgb(0x8a4210)},
	{runtimeCode, "Go's runtime", rgb(0xd1d9e0), rgb(0x3d444d)},
	{otherCode, "all else", rgb(0xe6dcf5), rgb(0x51426e)},
}

func (t theme) ink(kind string) string {
	i := max(0, slices.IndexFunc(inks, func(i ink) bool { return i.kind == kind }))
	return hex(t.colour(style{light: inks[i].light, dark: inks[i].dark}))
}

// drawFlames writes the flame graphs, one for each number of nodes.
func (r *Results) drawFlames(folder string) error {
	for _, b := range r.Benches {
		if len(b.Flame) == 0 {
			continue
		}
		for _, t := range themes {
			file := filepath.Join(folder, fmt.Sprintf("flame-%v%s.svg", b.X, t.suffix))
			if err := os.WriteFile(file, drawFlame(b.Title, b.Flame, t), 0o644); err != nil { //nolint:gosec // everyone may read it
				return err
			}
		}
	}
	return nil
}

// drawFlame draws a flame graph. A caller is below the functions that it
// called. Each frame is as wide as its share of all samples.
func drawFlame(title string, frames []Frame, t theme) []byte {
	var out bytes.Buffer
	rows := 0
	for _, f := range frames {
		rows = max(rows, f.depth+1)
	}
	height := flameHead + rows*flameRow
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d"`+
		` font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="11" fill="%s">`+"\n",
		flameWidth, height, hex(t.text))
	fmt.Fprintf(&out, `<text x="0" y="18" font-size="15">%s: the client's processor time, %d samples</text>`+
		"\n", escaped(title), frames[0].samples)
	x := 0.0
	for _, i := range inks {
		fmt.Fprintf(&out, `<rect x="%.1f" y="30" width="12" height="12" fill="%s"/><text x="%.1f" y="40">%s</text>`+
			"\n", x, t.ink(i.kind), x+17, i.meaning)
		x += 17 + flameLetter*float64(utf8.RuneCountInString(i.meaning)) + 20
	}
	scale := flameWidth / float64(frames[0].samples)
	from := make([]float64, rows+1) // where the next frame of each depth begins
	for _, f := range frames {
		x, width := from[f.depth], scale*float64(f.samples)
		from[f.depth], from[f.depth+1] = x+width, x
		y := height - (f.depth+1)*flameRow
		// Leave a little space on the right, so that neighbours do not touch.
		fmt.Fprintf(&out,
			`<g><title>%s: %d samples, %.1f%%</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>`,
			escaped(f.name), f.samples, 100*width/flameWidth, x, y, max(0.5, width-0.8), flameRow-1, t.ink(f.kind))
		if label := fit(f.name, int((width-6)/flameLetter)); label != "" {
			fmt.Fprintf(&out, `<text x="%.2f" y="%d">%s</text>`, x+3, y+12, escaped(label))
		}
		out.WriteString("</g>\n")
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// fit shortens a name to a number of letters: to the function or method alone,
// to its beginning, or to "" if that would be meaningless.
func fit(name string, letters int) string {
	if utf8.RuneCountInString(name) > letters {
		for _, end := range []string{".", ")."} { // end of the package, end of the receiver
			if _, rest, ok := strings.Cut(name, end); ok {
				name = rest
			}
		}
	}
	runes := []rune(name)
	switch {
	case len(runes) <= letters:
		return name
	case letters < 4:
		return ""
	default:
		return string(runes[:letters-1]) + "…"
	}
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer never fails
	return b.String()
}
