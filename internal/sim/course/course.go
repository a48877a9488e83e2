package course

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// The course of a schedule: true time, chance, what a generator wants to
// happen, the trace of what has happened, and the violation found.

// Course is one schedule's, without what it happens to.
type Course struct {
	RNG   *rand.Rand
	Now   Moment
	Trace io.Writer
	Push  func(at Moment, do func()) // has something happen at a moment

	Tape    *Tape // nil, or what happens is recorded as a trace
	Stats   Stats
	Broken  *Violation // the first; nil: none
	Excused bool       // a jump could not be noticed: two may hold

	steps     []step // what a generator wants done, one after the other
	armed     bool   // the first step only waits for its moment
	stepLimit Moment // when the first step is done even though its condition does not hold
}

// step is one thing that a generator wants done: when cond holds, or patience
// is at its end, and then delay has passed.
type step struct {
	cond  func() bool
	limit time.Duration
	delay time.Duration
	do    func()
}

// Then appends a step that needs no condition.
func (c *Course) Then(delay time.Duration, do func()) {
	c.steps = append(c.steps, step{delay: delay, do: do})
}

// Once appends a step that waits for cond, but for so long only.
func (c *Course) Once(cond func() bool, limit, delay time.Duration, do func()) {
	c.steps = append(c.steps, step{cond: cond, limit: limit, delay: delay, do: do})
}

// Step arms the first step when its time has come.
func (c *Course) Step() {
	if c.armed || len(c.steps) == 0 {
		return
	}
	s := c.steps[0]
	if c.stepLimit == 0 {
		c.stepLimit = c.Now.Add(s.limit)
		if s.cond != nil {
			c.At(s.limit, func() {}) // so that the condition is tested then
		}
	}
	if s.cond != nil && c.Now < c.stepLimit && !s.cond() {
		return
	}
	c.armed = true
	c.At(s.delay, func() {
		c.armed, c.stepLimit = false, 0
		if len(c.steps) > 0 {
			c.steps = c.steps[1:]
			s.do()
		}
	})
}

// RecordOn has the schedule be recorded.
func (c *Course) RecordOn(x *Tape) { c.Tape, x.now = x, &c.Now }

// ForgetSteps has no further step be done.
func (c *Course) ForgetSteps() { c.steps = nil }

// At does something to the world later.
func (c *Course) At(d time.Duration, fn func()) {
	c.Push(c.Now.Add(d), fn)
}

// Around draws a time between half and one and a half of d, rarely much longer.
func (c *Course) Around(d time.Duration) time.Duration {
	t := d/2 + time.Duration(c.RNG.Int64N(int64(d)+1))
	if c.RNG.IntN(20) == 0 {
		t *= 3
	}
	return t
}

// Log writes a line of the trace. Callers on the hot path look at Trace
// first.
func (c *Course) Log(format string, args ...any) {
	if c.Trace != nil {
		fmt.Fprintf(c.Trace, "%12.6f  %s\n", float64(c.Now)/1e9, fmt.Sprintf(format, args...))
	}
}

// Violation is what a schedule showed.
type Violation struct {
	Kind string // as in the package's documentation; or panic
	What string
	At   time.Duration
}

func (v *Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Kind, v.At, v.What) }

// Fail says that a promise is broken.
func (c *Course) Fail(kind, format string, args ...any) {
	if c.Excused && (kind == "capacity" || kind == "token") {
		return
	}
	if c.Broken == nil {
		c.Broken = &Violation{kind, fmt.Sprintf(format, args...), time.Duration(c.Now)}
		c.Log("VIOLATION %v", c.Broken)
	}
}
