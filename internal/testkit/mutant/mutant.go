// Package mutant switches rules off, to see whether a test notices. A mutant is
// the library without one rule.
//
// Production code has no switches. A comment marks the condition or the
// statement that implements a rule:
//
//	if now.Sub(c.began) >= c.TTL { //mutant:RuleAbandon
//
// Package overlay writes copies of the marked files in which each marked place
// calls On. A build with
//
//	go test -tags mutants -overlay=$(go run ./internal/testkit/mutant/overlay)
//
// compiles the copies. Every other build contains none of this: no import, no
// call, no field.
package mutant

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Rule is a rule that a build with the overlay can leave out, or a constant
// that it can halve or double.
type Rule struct {
	Name    string
	Without string // what the rule says, and after the colon what happens without it
}

var (
	off    [512]atomic.Bool  // by the place in All
	scaled [512]atomic.Int32 // of a constant: 2 doubled, -2 halved
)

// All are the rules, in the order of the list.
var All = list()

// list joins the lists.
func list() (all []Rule) {
	for _, s := range Lists {
		all = append(all, s.Rules...)
	}
	return all
}

// Place returns the index of a rule in All, or -1 if there is no rule of that
// name.
func Place(name string) int {
	for i, r := range All {
		if r.Name == name {
			return i
		}
	}
	return -1
}

// On reports whether a rule is on. Copies in the overlay call it with the
// rule's index in All.
func On(place int) bool { return !off[place].Load() }

// Scaled returns v, half of v or twice v. Copies in the overlay call it.
func Scaled[T ~int64](place int, v T) T {
	switch scaled[place].Load() {
	case -2:
		return v / 2
	case 2:
		return v * 2
	}
	return v
}

// Off switches rules off in this process until restore is called. The name
// half.X halves the constant X, and twice.X doubles it. No other test may run
// meanwhile, because the switches apply to the whole process.
func Off(names ...string) (restore func()) {
	if !Overlaid && len(names) > 0 {
		panic("this build has no mutants: see internal/testkit/mutant")
	}
	var undo []func()
	for _, name := range names {
		undo = append(undo, set(name))
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

func set(name string) (restore func()) {
	by, of, constant := strings.Cut(name, ".")
	if !constant {
		of = name
	}
	i := Place(of)
	switch {
	case i < 0 || constant != IsConstant(of) || constant && by != "half" && by != "twice":
		panic(fmt.Sprintf("there is no rule %q", name))
	case by == "half":
		scaled[i].Store(-2)
	case by == "twice":
		scaled[i].Store(2)
	default:
		off[i].Store(true)
	}
	return func() { off[i].Store(false); scaled[i].Store(0) }
}

// IsConstant reports whether a name in the list is the name of a constant.
func IsConstant(name string) bool { return strings.HasPrefix(name, "Const") }

// Honest calls f with all rules on and returns its result. A judge uses it to
// call the code that it judges.
func Honest[T any](f func() T) T {
	for i := range All {
		if off[i].Swap(false) {
			defer off[i].Store(true)
		}
	}
	return f()
}
