package course

import (
	"fmt"
	"time"
)

// This file owns the violation that a schedule shows.

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
