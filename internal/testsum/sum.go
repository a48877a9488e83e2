package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of what does not build, in place of Package
	Elapsed                       float64
}

// parse returns the event in a line, if it is one.
func parse(line string) (e event, ok bool) {
	if !strings.HasPrefix(line, `{"`) {
		return e, false
	}
	err := json.Unmarshal([]byte(line), &e)
	return e, err == nil && e.Action != ""
}

// test names a test, or a package if its name is empty.
type test struct{ pkg, name string }

func (t test) String() string { return strings.TrimSpace(t.pkg + " " + t.name) }

// sum adds up events. It is not safe for concurrent use.
type sum struct {
	out      io.Writer
	strict   bool // a skipped test is a failure
	progress func(line string)
	ticks    <-chan time.Time // when a line of progress is due

	stage   string    // the one that runs
	start   time.Time // when it began
	running []string  // its packages whose tests run

	passed, failed, skipped int
	stages                  []string // those that failed
	fails, skips            []string

	said  map[test][]string // what the tests that run have written
	began map[string][]string
	bad   map[string]bool // packages in which a test has failed
	slow  []string        // the packages of this stage whose tests took long, and how long
}

func (s *sum) event(e event) {
	if s.said == nil {
		s.said, s.began, s.bad = map[test][]string{}, map[string][]string{}, map[string]bool{}
	}
	t := test{e.Package, e.Test}
	switch e.Action {
	case "start":
		s.running = append(s.running, path.Base(t.pkg))
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "run":
		s.began[t.pkg] = append(s.began[t.pkg], t.name)
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			s.said[t] = append(s.said[t], e.Output)
		}
	case "pass", "fail", "skip":
		if t.name == "" {
			if i := slices.Index(s.running, path.Base(t.pkg)); i >= 0 {
				s.running = slices.Delete(s.running, i, i+1)
			}
			if e.Elapsed > 30 {
				s.slow = append(s.slow, fmt.Sprintf("%s %.0fs", path.Base(t.pkg), e.Elapsed))
			}
			s.end(t, e.Action == "fail")
			return
		}
		s.began[t.pkg] = slices.DeleteFunc(s.began[t.pkg], func(name string) bool { return name == t.name })
		switch e.Action {
		case "pass":
			s.passed++
		case "skip":
			s.skipped++
			s.skips = append(s.skips, t.String()+": "+reason(s.said[t]))
		default:
			s.fail(t)
		}
		delete(s.said, t)
	}
}

// fail counts a failure and shows what was written.
func (s *sum) fail(t test) {
	s.failed++
	s.bad[t.pkg] = true
	s.fails = append(s.fails, t.String())
	fmt.Fprintf(s.out, "FAILED: %v\n%s", t, strings.Join(s.said[t], ""))
}

// end ends a package. The tests that it leaves unfinished have failed, as after
// a panic. A package that fails without a test that does was not built, or
// exited.
func (s *sum) end(t test, failed bool) {
	for _, name := range s.began[t.pkg] {
		s.fail(test{t.pkg, name})
		delete(s.said, test{t.pkg, name})
	}
	if failed && !s.bad[t.pkg] {
		s.fail(t)
	}
	delete(s.said, t)
	delete(s.began, t.pkg)
	delete(s.bad, t.pkg) // another stage may run it again
}

// reason is why a test was skipped: what it wrote before the line that says so.
func reason(said []string) string {
	said = slices.DeleteFunc(slices.Clone(said),
		func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "--- SKIP") })
	return strings.TrimSpace(strings.Join(said, ""))
}
