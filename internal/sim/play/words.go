package play

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/sim/world"
)

// Parsing the words of a command.

// args are the words of a command that have not been read yet.
type args struct {
	words []string
	err   error // the first
}

func (a *args) next() string {
	if len(a.words) == 0 {
		a.fail(fmt.Errorf("a word is missing at the end"))
		return ""
	}
	s := a.words[0]
	a.words = a.words[1:]
	return s
}

// take reads the word if it is the next one.
func (a *args) take(word string) bool {
	if len(a.words) > 0 && a.words[0] == word {
		a.words = a.words[1:]
		return true
	}
	return false
}

func (a *args) fail(err error) {
	if a.err == nil && err != nil {
		a.err = err
	}
}

func (a *args) number() (n int) {
	s := a.next()
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil {
		a.fail(fmt.Errorf("%q is no number", s))
	}
	return n
}

func (a *args) duration() time.Duration {
	d, err := time.ParseDuration(strings.TrimPrefix(a.next(), "+"))
	a.fail(err)
	return d
}

// numbers reads nodes: 1, or several as 1,2.
func (a *args) numbers() (ns []int) {
	s := a.next()
	for f := range strings.SplitSeq(s, ",") {
		n := 0
		if _, err := fmt.Sscanf(f, "%d", &n); err != nil {
			a.fail(fmt.Errorf("%q are no nodes, such as 1,2", s))
		}
		ns = append(ns, n)
	}
	return ns
}

// pattern reads a pattern of messages.
func (a *args) pattern() (world.Parcel, error) {
	q, rest, err := parse(a.words)
	a.words = rest
	return q, err
}

// parse reads a parcel or a pattern: [late|failure|up|down] from>to [op[#n]].
func parse(args []string) (p world.Parcel, rest []string, err error) {
	p.Kind = world.EvRequest
	for k, s := range world.Prefixes {
		if len(args) > 0 && args[0]+" " == s {
			p.Kind, args = k, args[1:]
			break
		}
	}
	if len(args) == 0 {
		return p, nil, fmt.Errorf("a link is missing, such as a>1 or 1>a")
	}
	var ok bool
	if args[0] == "*" {
		p.From, p.To = "*", "*"
	} else if p.From, p.To, ok = strings.Cut(args[0], ">"); !ok {
		return p, nil, fmt.Errorf("%q is no link such as a>1 or 1>a", args[0])
	}
	rest = args[1:]
	if len(rest) > 0 && slices.Contains(operations, strings.Split(rest[0], "#")[0]) {
		op, no, numbered := strings.Cut(rest[0], "#")
		if p.Op = op; numbered {
			if _, err := fmt.Sscan(no, &p.No); err != nil {
				return p, nil, fmt.Errorf("%q: %v", rest[0], err)
			}
		}
		rest = rest[1:]
	}
	return p, rest, nil
}

// operations are what a parcel may be.
var operations = []string{
	"join", "settle", "beat", "leave", "read", "open", "put", "repair", "hello",
	"time", "mark", "longest", "push",
	"look", "turn", "stay", "list", "complete", "yield", "move", "set",
}
