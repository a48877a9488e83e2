package board

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/fault"
)

// widest is how long a text is that is shown.
const widest = 300

// Printable returns text as one line that changes nothing in what shows it:
// names, labels and error messages come from other clients and from nodes.
func Printable(text string) string {
	if shown := []rune(text); len(shown) > widest {
		text = string(shown[:widest-1]) + "…"
	}
	return string(Escape([]byte(text), ""))
}

// Escape returns text without what could change what a terminal shows, or does:
// no character that cannot be printed passes, but for those in keep. It is
// written as Go writes it in a quoted string.
func Escape(text []byte, keep string) []byte {
	var safe []byte
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case strings.ContainsRune(keep, r) && r != utf8.RuneError, r != utf8.RuneError && unicode.IsPrint(r):
			safe = append(safe, rest[:size]...)
		case size == 1:
			quoted := strconv.Quote(string(rest[:1]))
			safe = append(safe, quoted[1:len(quoted)-1]...)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			safe = append(safe, quoted[1:len(quoted)-1]...)
		}
		rest = rest[size:]
	}
	return safe
}

// Ready says how many nodes are ready and how many must be.
func Ready(ready, nodes, quorum int) string {
	is := func(n int) string { return lo.Ternary(n == 1, "is", "are") }
	return fmt.Sprintf("%d of %s %s ready, %d %s needed", ready, fault.Count(nodes, "node"), lo.Ternary(nodes == 1, "is", is(ready)), quorum, is(quorum))
}

// Process names the process of a claim.
func Process(c *inspect.Claim) string {
	s := fmt.Sprintf("process %d on %s", c.PID, c.Host)
	if c.Label != "" {
		s += " (" + c.Label + ")"
	}
	return s
}

// Share says how much of a name a claim has or wants.
func Share(r *inspect.Report, c *inspect.Claim) string {
	switch {
	case r.Kind == inspect.RWMutex && c.Writer:
		return ", to write"
	case r.Kind == inspect.RWMutex:
		return ", to read"
	case r.Kind == inspect.Semaphore:
		return fmt.Sprintf(", %d of the permits", c.Weight)
	}
	return ""
}

// record says in a few words what is recorded.
func record(r *inspect.Report) string {
	switch r.Kind {
	case inspect.Once:
		return "done"
	case inspect.Leader:
		return r.Record.ID + " leads, or led last"
	}
	return "under token " + token(r.Record.Token)
}

// mostProblems is how many names are listed as a problem.
const mostProblems = 8

// problems says what an operator should look at.
func (v *View) problems() []string {
	all := []string{}
	if v.Trouble != "" {
		all = append(all, v.Trouble)
	}
	for _, n := range v.Nodes {
		switch {
		case !n.Up && n.Cause != "":
			all = append(all, fmt.Sprintf("%s is down: %s: %s", n.Name, n.State, n.Cause))
		case !n.Up:
			all = append(all, fmt.Sprintf("%s is down: %s", n.Name, n.State))
		case n.Cause != "":
			all = append(all, fmt.Sprintf("%s %s: %s", n.Name, n.State, n.Cause))
		case n.Recovering > 0:
			all = append(all, fmt.Sprintf("%s is recovering: %s", n.Name, n.State))
		}
	}
	left := mostProblems
	for i := range v.Names {
		if r := &v.Names[i]; r.Late && left > 0 {
			left--
			all = append(all, fmt.Sprintf("%s: %s does not renew its lease, and %s", r.Name, lateHolder(r), Waits(r)))
		}
	}
	return all
}

func lateHolder(r *Row) string {
	for _, c := range r.Holders {
		if c.Late {
			return c.Process
		}
	}
	return ""
}

// Waits says how many wait for a name, and how long.
func Waits(r *Row) string {
	switch {
	case r.Wait == 0:
		return "none waits"
	case r.Wait == 1:
		return "1 waits, for " + Seconds(r.Waited)
	}
	return fmt.Sprintf("%d wait, the first for %s", r.Wait, Seconds(r.Waited))
}

// Seconds writes a duration as short as an onlooker needs it.
func Seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
