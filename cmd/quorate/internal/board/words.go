package board

import (
	"fmt"
	"regexp"
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

// Ready says how many nodes are ready and how many must be, or, if these are too
// few, how many are connected.
func Ready(connected, ready, nodes, quorum int) string {
	if ready < quorum {
		return fault.VoteSummary(connected, nodes, ready, quorum)
	}
	is := func(n int) string { return lo.Ternary(n == 1, "is", "are") }
	return fmt.Sprintf("%d of %s %s ready, %d %s needed", ready, fault.Count(nodes, "node"),
		lo.Ternary(nodes == 1, "is", is(ready)), quorum, is(quorum))
}

// Process names the process of a claim.
func Process(c *inspect.Claim) string {
	s := fmt.Sprintf("process %d on %s", c.PID, c.Host)
	if c.Label != "" {
		s += " (" + c.Label + ")"
	}
	return s
}

// Claimant names the process of a claim, and what the claim says of itself.
func Claimant(c *inspect.Claim) string {
	s := Process(c)
	if c.ID != "" {
		s += fmt.Sprintf(", ID %q", c.ID)
	}
	if c.Priority != 0 {
		s += fmt.Sprintf(", priority %d", c.Priority)
	}
	if c.Note != "" {
		s += fmt.Sprintf(", note %q", c.Note)
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
		return ", " + fault.Count(int(c.Weight), "permit")
	}
	return ""
}

// record says in a few words what is recorded.
func record(r *inspect.Report, now time.Time) string {
	switch at := moment(r.Record.At, now); r.Kind {
	case inspect.Once:
		return "done " + at
	case inspect.Leader:
		if len(r.Holders) > 0 {
			return r.Record.ID + " leads"
		}
		return "no leader (last: " + r.Record.ID + ")"
	case inspect.Period:
		return "last run " + at
	case inspect.Flight:
		return "loaded " + at
	}
	return "a value of another program"
}

// moment is a time, with its day if that is not today.
func moment(t, now time.Time) string {
	t = t.UTC()
	if t.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return t.Format(time.TimeOnly + " MST")
	}
	return t.Format("2006-01-02 15:04 MST")
}

// onTheWay is what an error of the network says before its cause.
var onTheWay = regexp.MustCompile(`^(not connected: |connect to \S+: |dial \S+ ?\S*: |connect: |lookup \S+( on \S+)?: |(read|write) \S+ \S+: )+`)

// reason is a cause in a few words: what a table says in full.
func reason(cause string) string {
	cause = onTheWay.ReplaceAllString(cause, "")
	if at := strings.IndexAny(cause, ":;,("); at > 0 {
		cause = cause[:at]
	}
	if cause = strings.TrimSpace(cause); cause == "context deadline exceeded" {
		return "timeout"
	}
	if short := []rune(cause); len(short) > 60 {
		cause = string(short[:59]) + "…"
	}
	return cause
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
			all = append(all, fmt.Sprintf("%s %s (%s)", n.Name, is(n.State), reason(n.Cause)))
		case !n.Up:
			all = append(all, n.Name+" "+is(n.State))
		case n.Cause != "":
			all = append(all, fmt.Sprintf("%s %s (%s)", n.Name, n.State, reason(n.Cause)))
		case n.Recovering > 0:
			all = append(all, fmt.Sprintf("%s lost its data or was restarted: %s", n.Name, n.State))
		}
	}
	left := mostProblems
	for i := range v.Names {
		if r := &v.Names[i]; r.Late && left > 0 {
			left--
			all = append(all, fmt.Sprintf("%s: %s does not renew its lease; %s", r.Name, lateHolder(r), Waits(r)))
		}
	}
	return all
}

// is makes a sentence of the state of a node that does not serve.
func is(state string) string { return lo.Ternary(state == "no vote", "has ", "is ") + state }

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
		return "none waiting"
	case r.Wait == 1:
		return "1 waiting, for " + Seconds(r.Waited)
	}
	return fmt.Sprintf("%d waiting, the longest for %s", r.Wait, Seconds(r.Waited))
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
