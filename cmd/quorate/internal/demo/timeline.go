package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/quorate/quorate/cmd/quorate/internal/lanes"
)

// margin is what stands before the first column of time.
const margin = 12

// timeline draws one row per worker and per node, time to the right. A column
// shows the worker that held the lock longest in it, so that a row of its own
// for each worker does not make short holds look like two at once.
func (s *story) timeline(now time.Duration, width int, st style) []string {
	cols := max(width-margin-2, 20)
	span := max(s.length, now)
	window := lanes.Window{To: span, Columns: cols}
	var held []lanes.Span
	for _, h := range s.holds {
		end := h.end
		if h.fate == running {
			end = now
		}
		held = append(held, lanes.Span{From: h.got, To: end, Value: h.worker + 1})
	}
	holders := window.Values(held)
	lines := []string{s.axis(cols, span)}
	for w := range s.workers {
		end := cols
		if s.victim != nil && s.victim.worker == w {
			end = window.At(s.victim.end)
		}
		here := make([]int, cols)
		for c, holder := range holders {
			here[c] = lo.Ternary(holder == w+1, 1, 0)
		}
		cells := draw(here, end, window.At(now), st, func(value int) (string, func(string) string) {
			if value == 1 {
				return st.block, func(run string) string { return st.worker(w, run) }
			}
			return st.dot, st.dim
		})
		lines = append(lines, row(st.worker(w, fmt.Sprintf("worker %-2d", w+1)), cells))
	}
	for n := range s.nodes {
		end := cols
		if s.nodeDown == n {
			end = window.At(s.nodeDownAt)
		}
		cells := draw(make([]int, cols), end, window.At(now), st,
			func(int) (string, func(string) string) { return st.dash, st.dim })
		lines = append(lines, row(fmt.Sprintf("node %-4d", n+1), cells))
	}
	return append(lines,
		strings.Repeat(" ", margin)+fmt.Sprintf("%s holds the lock   %s waits for it   %s killed   %s node is up",
			st.block, st.dot, st.cross, st.dash))
}

// draw makes a row: what sign says of each value, up to now, or up to the end
// and its mark.
func draw(values []int, end, now int, st style, sign func(value int) (string, func(string) string)) string {
	var b strings.Builder
	for _, r := range lanes.Runs(values[:min(len(values), end, now+1)]) {
		text, paint := sign(r.Value())
		b.WriteString(paint(strings.Repeat(text, r.Len())))
	}
	if end < len(values) {
		b.WriteString(st.red(st.cross))
	}
	return b.String()
}

func row(name, cells string) string { return "  " + name + " " + cells }

// axis marks the seconds, as many as there is room for.
func (s *story) axis(cols int, span time.Duration) string {
	b := []byte(strings.Repeat(" ", margin+cols))
	step := time.Second
	for int64(cols)*int64(step)/int64(span) < 8 {
		step *= 2
	}
	for t := time.Duration(0); t < span; t += step {
		label := fmt.Sprintf("%ds", int(t.Seconds()))
		at := margin + int(int64(cols)*int64(t)/int64(span))
		if at+len(label) <= len(b) {
			copy(b[at:], label)
		}
	}
	return strings.TrimRight(string(b), " ")
}
