package top

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/internal/fault"
)

// Styles, as terminals know them. What they say is also said in words.
const (
	plain  = ""
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	bad    = "\x1b[1;31m"
	warn   = "\x1b[33m"
	good   = "\x1b[32m"
	chosen = "\x1b[7m"
	reset  = "\x1b[m"
)

const narrowest = 5 // columns of a table that has too little room

func styled(style, text string) string {
	if style == plain {
		return text
	}
	return style + text + reset
}

// text is the screen. No line is wider than that, nor are there more lines.
func (m Model) text() string {
	if !m.seen {
		return "quorate top: asking the nodes …"
	}
	v := &m.view
	lines := []string{m.headline()}
	lines = append(lines, m.problems()...)
	lines = append(lines, "")
	var nodes [][]cell
	for _, n := range v.Nodes {
		nodes = append(nodes, nodeRow(&n))
	}
	lines = append(lines, m.table(m.height/3, []string{"NODE", "STATE", "CAUSE"}, nodes, -1)...)
	lines = append(lines, "")
	room := max(0, m.height-len(lines)-1) // but for the last line
	var below []string
	if m.open {
		below = m.lastMinutes(room / 2)
		lines = append(lines, m.detail(room-len(below))...)
	} else {
		below = m.lastMinutes(max(room/2, room-len(m.names())-2))
		lines = append(lines, m.list(room-len(below))...)
	}
	for len(lines) < m.height-1-len(below) {
		lines = append(lines, "")
	}
	lines = append(lines, below...)
	if len(lines) >= m.height {
		lines = lines[:max(0, m.height-1)]
	}
	lines = append(lines, m.keys())
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "…")
	}
	return strings.Join(lines, "\n")
}

// lastMinutes is the picture of the last five minutes, and below it the newest
// events.
func (m Model) lastMinutes(room int) []string {
	lines := append([]string{styled(bold, "LAST FIVE MINUTES")}, m.picture(room*2/3)...)
	for _, e := range m.view.Events[:min(len(m.view.Events), max(3, room-len(lines)))] {
		lines = append(lines, m.event(&e))
	}
	return lines
}

func (m Model) headline() string {
	v, waits := &m.view, 0
	for _, r := range v.Names {
		waits += r.Wait
	}
	names := fault.Count(v.Total, "name") + " in use"
	if v.Trouble != "" {
		names = "the names in use are unknown"
	} else if !v.Counted {
		names = "at least " + names
	}
	style := plain
	if v.Ready < v.Quorum {
		style = bad
	}
	return styled(bold, "quorate") + "  " + styled(style, v.Summary) +
		fmt.Sprintf(" · %s · %d waiting · %s", names, waits, v.At.Local().Format(time.TimeOnly))
}

func (m Model) problems() (lines []string) {
	for i, p := range m.view.Problems {
		if most := max(2, m.height/5); i == most {
			return append(lines, styled(bad, fmt.Sprintf("! and %d more", len(m.view.Problems)-most)))
		}
		lines = append(lines, styled(bad, "! "+p))
	}
	return lines
}

// cell is one field of a table.
type cell struct{ text, style string }

// table lays out rows in the width of the screen, and at most room lines: the
// row at is among them, unless it is -1.
func (m Model) table(room int, head []string, rows [][]cell, at int) (lines []string) {
	widths := make([]int, len(head))
	total := 2 * (len(head) - 1)
	for i, h := range head {
		widths[i] = len(h)
		for _, r := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(r[i].text))
		}
		total += widths[i]
	}
	for ; total > m.width; total-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	line := func(cells []cell, over string) string {
		var b strings.Builder
		for i, c := range cells {
			text := ansi.Truncate(c.text, widths[i], "…")
			if i < len(cells)-1 {
				text += strings.Repeat(" ", widths[i]+2-ansi.StringWidth(text))
			}
			b.WriteString(styled(cmp.Or(over, c.style), text))
		}
		return b.String()
	}
	titles := make([]cell, len(head))
	for i, h := range head {
		titles[i] = cell{h, bold}
	}
	lines = append(lines, line(titles, ""))
	room = max(1, room-1)
	first := min(max(0, at-room/2), max(0, len(rows)-room))
	for i := first; i < min(first+room, len(rows)); i++ {
		over := ""
		if i == at {
			over = chosen
		}
		lines = append(lines, line(rows[i], over))
	}
	return lines
}

func nodeRow(n *board.Node) []cell {
	state := cell{n.State, good}
	switch {
	case !n.Up:
		state = cell{"! " + n.State, bad}
	case n.Recovering > 0:
		state = cell{"! " + n.State, warn}
	}
	return []cell{{n.Name, plain}, state, {cmp.Or(n.Cause, "-"), dim}}
}

func (m Model) list(room int) []string {
	names := m.names()
	rows := make([][]cell, len(names))
	for i := range names {
		rows[i] = m.row(&names[i])
	}
	lines := m.table(room, []string{"NAME", "KIND", "HELD BY", "SINCE", "LEASE LEFT", "WAITING", "LONGEST WAIT"},
		rows, m.at(names))
	if len(rows) == 0 && m.view.Counted && m.view.Trouble == "" {
		lines = append(lines, styled(dim, "no names"))
	}
	return lines
}

func (m Model) row(r *board.Row) []cell {
	holder, since, left := cell{cmp.Or(r.Record, "-"), dim}, cell{"-", dim}, cell{"-", dim}
	if r.Foreign > 0 {
		holder = cell{"another library", plain}
	}
	for i := len(r.Holders) - 1; i >= 0; i-- { // the first, or the one that does not renew
		if c := &r.Holders[i]; i == 0 && holder.style != bad || c.Late {
			holder, since, left = cell{c.Process + c.Share, plain}, cell{m.ago(c.Since), plain}, leaseLeft(c)
			holder.style = left.style
		}
	}
	if n := len(r.Holders); n > 1 {
		holder.text += fmt.Sprintf(" and %d more", n-1)
	}
	if r.Unsure {
		since, left = cell{"-", dim}, cell{"-", dim}
		if holder.text = "? last: " + holder.text; len(r.Holders) == 0 && r.Record == "" {
			holder.text = "?"
		}
		holder.style = warn
	}
	wait, first := cell{"0", dim}, cell{"-", dim}
	if r.Wait > 0 {
		wait, first = cell{strconv.Itoa(r.Wait), warn}, cell{board.Seconds(r.Waited), warn}
	}
	name := cell{r.Name, plain}
	if r.Late {
		name.style = bad
	}
	return []cell{name, {r.Kind, plain}, holder, since, left, wait, first}
}

func leaseLeft(c *board.Claim) cell {
	if c.Late {
		return cell{"! " + board.Seconds(c.Left) + ", not renewed", bad}
	}
	return cell{board.Seconds(c.Left), plain}
}

func (m Model) ago(at time.Time) string {
	return board.Seconds(max(0, m.view.At.Sub(at)).Seconds()) + " ago"
}

// detail is the queue of the chosen name, and what each node says.
func (m Model) detail(room int) []string {
	at := m.at(m.view.Names)
	if at < 0 {
		return []string{styled(bold, m.chosen) + ": not in use"}
	}
	r := &m.view.Names[at]
	lines := []string{styled(bold, r.Name) + ": " + r.Kind + ", " + board.Waits(r)}
	if r.Record != "" {
		lines = append(lines, "recorded: "+r.Record)
	}
	var says [][]cell
	for i := range r.Nodes {
		says = append(says, saysRow(&r.Nodes[i]))
	}
	var queue [][]cell
	for i, c := range r.Holders {
		queue = append(queue, m.claim("holds", &r.Holders[i], c.Share))
	}
	for i, c := range r.Waiters {
		queue = append(queue, m.claim("waits "+strconv.Itoa(i+1), &r.Waiters[i], c.Share))
	}
	lines = append(lines, m.table(room-len(lines)-len(says)-3,
		[]string{"CLAIM", "PROCESS", "TOKEN", "SINCE", "LEASE LEFT", "VOTES"}, queue, -1)...)
	lines = append(lines, "")
	return append(lines, m.table(len(says)+1, []string{"NODE", "VOTES FOR", "QUEUED", "DIFFERS"}, says, -1)...)
}

func (m Model) claim(what string, c *board.Claim, share string) []cell {
	left := leaseLeft(c)
	return []cell{{what + share, plain}, {c.Process, left.style}, {shortToken(c.Token), plain},
		{m.ago(c.Since), plain}, left, {strconv.Itoa(c.Votes), plain}}
}

func saysRow(s *board.Says) []cell {
	if s.Err != "" {
		return []cell{{s.Node, plain}, {"-", dim}, {"-", dim}, {"! " + s.Err, bad}}
	}
	tokens := "-"
	if n := len(s.Tokens); n > 0 {
		tokens = shortToken(s.Tokens[0])
		if n > 1 {
			tokens += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return []cell{{s.Node, plain}, {tokens, plain}, {strconv.Itoa(s.Queued), plain},
		{strings.Join(s.Differs, "; "), warn}}
}

// shortToken is the last six digits, by which an eye tells tokens apart.
// "quorate inspect" prints them in full.
func shortToken(t string) string {
	if len(t) < 8 {
		return t
	}
	return "…" + t[len(t)-6:]
}

func (m Model) event(e *board.Event) string {
	style := plain
	switch {
	case e.Kind.Bad():
		style = bad
	case e.Kind == board.NodeUp:
		style = good
	}
	return fmt.Sprintf("%10s  ", m.ago(e.At)) + styled(style, fmt.Sprintf("%-10s", e.Kind)) + "  " + e.Subject +
		": " + e.Text
}

func (m Model) keys() string {
	switch {
	case m.typing:
		return styled(bold, "filter: ") + m.filter + "▏" + styled(dim, "  enter keeps it, esc clears it")
	case m.open:
		return styled(dim, "enter, esc back · q quit")
	case m.filter != "":
		return styled(bold, "filter: "+m.filter) + styled(dim,
			"  esc clears it · ↑↓ choose · enter queue · q quit")
	}
	return styled(dim, "↑↓ choose · enter queue · / filter · q quit")
}
