package board

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quorate/quorate/inspect"
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
