package course

import (
	"fmt"
	"strings"
	"time"
)

// Recording a schedule as a trace.

// Tape records a schedule as a trace: what chance and the plan of an aim
// decide, and in which order everything arrives. What follows from that is not
// recorded. All methods may be called on nil, which records nothing.
type Tape struct {
	Lines  []string
	now    *Moment
	before []string // what an aim has done before the schedule begins
	at     Moment   // of the last line
	depth  int      // inside of something that has been recorded
	Plan   bool     // the plan of an aim is at work
}

// Start begins the trace with a line. Clocks follow, and then ready.
func (x *Tape) Start(line string) { x.Lines, x.at = append(x.Lines, line), *x.now }

// Ready ends the beginning of the trace with what an aim has done before.
func (x *Tape) Ready() { x.Lines = append(x.Lines, x.before...) }

// Note records a command.
func (x *Tape) Note(format string, args ...any) {
	if x == nil || x.depth > 0 {
		return
	}
	if len(x.Lines) == 0 {
		if !strings.HasPrefix(format, "clock") { // setup tells what the clocks show
			x.before = append(x.before, fmt.Sprintf(format, args...))
		}
		return
	}
	if now := *x.now; now != x.at {
		x.Lines = append(x.Lines, fmt.Sprintf("at %v", time.Duration(now)-time.Second))
		x.at = now
	}
	x.Lines = append(x.Lines, fmt.Sprintf(format, args...))
}

// Within records nothing until the function that it returns is called: what
// happens follows from what has been recorded.
func (x *Tape) Within() func() {
	if x == nil {
		return func() {}
	}
	x.depth++
	return func() { x.depth-- }
}
