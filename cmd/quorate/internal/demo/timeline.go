package demo

import (
	"fmt"
	"strings"
	"time"
)

// margin is what stands before the first column of time.
const margin = 12

// timeline draws one row per worker and per node, time to the right. A column
// shows the worker that held the lock longest in it, so that a row of its own
// for each worker does not make short holds look like two at once.
func (s *story) timeline(now time.Duration, width int, st style) []string {
	cols := max(width-margin-2, 20)
	span := max(s.length, now)
	col := func(t time.Duration) int { return min(int(int64(cols)*int64(t)/int64(span)), cols-1) }

	holders := make([]int, cols) // worker + 1
	for c := range holders {
		from, to := span*time.Duration(c)/time.Duration(cols), span*time.Duration(c+1)/time.Duration(cols)
		longest := time.Duration(0)
		for _, h := range s.holds {
			end := h.end
			if h.fate == running {
				end = now
			}
			if share := min(end, to) - max(h.got, from); share > longest {
				longest, holders[c] = share, h.worker+1
			}
		}
	}
	lines := []string{s.axis(cols, span)}
	for w := range s.workers {
		end := cols
		if s.victim != nil && s.victim.worker == w {
			end = col(s.victim.end)
		}
		cells := draw(cols, end, col(now), st, func(c int) (string, func(string) string) {
			if holders[c] == w+1 {
				return st.block, func(run string) string { return st.worker(w, run) }
			}
			return st.dot, st.dim
		})
		lines = append(lines, row(st.worker(w, fmt.Sprintf("worker %-2d", w+1)), cells))
	}
	for n := range s.nodes {
		end := cols
		if s.nodeDown == n {
			end = col(s.nodeDownAt)
		}
		cells := draw(cols, end, col(now), st, func(int) (string, func(string) string) { return st.dash, st.dim })
		lines = append(lines, row(fmt.Sprintf("node %-4d", n+1), cells))
	}
	return append(lines, strings.Repeat(" ", margin)+fmt.Sprintf("%s holds the lock   %s waits for it   %s killed   %s node is up",
		st.block, st.dot, st.cross, st.dash))
}

// draw makes a row: what cell says, up to now, or up to the end and its mark.
// Equal neighbours are painted together.
func draw(cols, end, now int, st style, cell func(c int) (string, func(string) string)) string {
	var b strings.Builder
	for c := 0; c < min(cols, end, now+1); {
		sign, paint := cell(c)
		n := 1
		for c+n < min(cols, end, now+1) {
			if next, _ := cell(c + n); next != sign {
				break
			}
			n++
		}
		b.WriteString(paint(strings.Repeat(sign, n)))
		c += n
	}
	if end < cols {
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
