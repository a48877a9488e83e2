package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/lanes"
)

// laneName is the width of a lane's name.
const laneName = 16

// colours are those of processes, as in the demo.
var colours = []string{"\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[32m", "\x1b[34m"}

// picture draws the last five minutes: a lane for each node that was away, and
// for as many names as there is room for. While a queue is shown, it draws a
// lane for each process there.
func (m Model) picture(room int) (lines []string) {
	p := &m.view.Picture
	cells := m.width - laneName - 2
	if room < 3 || cells < 20 {
		return nil
	}
	for i := range p.Nodes {
		if len(p.Nodes[i].Held) > 0 {
			lines = append(lines, m.lane(&p.Nodes[i], cells, func(v int) string {
				if v == board.NodeGuard {
					return styled(warn, "─")
				}
				return styled(bad, "✗")
			}))
		}
	}
	names := p.Names
	if m.open {
		names = nil
		for i := range p.Names {
			if p.Names[i].Name == m.chosen {
				names = p.Names[i].Queue
			}
		}
	}
	for i := range names {
		lines = append(lines, m.lane(&names[i], cells, func(v int) string {
			if c := p.Processes[v-1].Colour; c >= 0 {
				return styled(colours[c%len(colours)], "█")
			}
			return "▒"
		}))
	}
	if len(lines) == 0 {
		return nil
	}
	lines = lines[:min(len(lines), room-2)]
	axis := []byte(strings.Repeat(" ", cells))
	for minute := range 5 {
		copy(axis[minute*cells/5:], fmt.Sprintf("-%dmin", 5-minute))
	}
	copy(axis[cells-3:], "now")
	return append(append([]string{strings.Repeat(" ", laneName+1) + styled(dim, string(axis))}, lines...),
		strings.Repeat(" ", laneName+1)+styled(dim,
			"█ holds (one colour per process)  ▒ several hold  · waits  ✗ node down  ─ guard time"))
}

// lane draws one lane in so many cells.
func (m Model) lane(l *board.Lane, cells int, sign func(value int) string) string {
	w := lanes.Window{To: time.Duration(m.view.Picture.Columns), Columns: cells}
	scale := func(runs []lanes.Run) []int {
		spans := make([]lanes.Span, len(runs))
		for i, r := range runs {
			spans[i] = lanes.Span{From: time.Duration(r.At()), To: time.Duration(r.At() + r.Len()), Value: r.Value()}
		}
		return w.Values(spans)
	}
	held, wait := scale(l.Held), scale(l.Wait)
	var b strings.Builder
	name := ansi.Truncate(l.Name, laneName, "…")
	b.WriteString(name + strings.Repeat(" ", laneName+1-ansi.StringWidth(name)))
	for c, v := range held {
		switch {
		case v > 0:
			b.WriteString(sign(v))
		case wait[c] > 0:
			b.WriteString(styled(warn, "·"))
		default:
			b.WriteString(" ")
		}
	}
	return b.String()
}
