package play

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/sim/world"
)

// Commands about the callers of one process, which share a value; see local.go.
// The callers option of the nodes command gives each process that many. e/2 is
// the second caller of e. A caller does nothing by itself: it locks and unlocks
// when the trace says so.

// caller returns the caller of a label.
func (x *cast) caller(label string) (*world.Caller, error) {
	of, s, _ := strings.Cut(label, "/")
	no, err := strconv.Atoi(s)
	if err != nil || no < 1 || no > x.World.Callers {
		return nil, fmt.Errorf("%q is no caller, such as e/1: see the option callers", label)
	}
	t, err := x.participant(of)
	if err != nil {
		return nil, err
	}
	return t.Value.Callers[no-1], nil
}

// lock CALLER [reader] [try]
func (x *cast) lock(a *args) error {
	c, err := x.caller(a.next())
	if err != nil {
		return err
	}
	mode := process.Write
	if a.take("reader") {
		mode = process.Read
	}
	if c.Doing != world.Resting {
		return fmt.Errorf("%s %s", c.Name, Does(c))
	}
	c.Lock(mode, a.take("try"))
	return nil
}

// unlock CALLER [late DURATION]: late, it reads the clock so much later than
// the claim is looked at. unlock LABEL is by mistake: a goroutine that does not
// hold the value unlocks it.
func (x *cast) unlock(a *args) error {
	label := a.next()
	if !strings.Contains(label, "/") {
		t, err := x.participant(label)
		if err == nil && t.Value.Unlock(process.Write) == process.UnlockNotHeld {
			x.wire.Say("%s is not held", label)
		}
		return err
	}
	c, err := x.caller(label)
	switch {
	case err != nil:
		return err
	case c.Doing != world.Holding:
		return fmt.Errorf("%s %s", c.Name, Does(c))
	}
	if a.take("late") {
		c.Value.Stall = a.duration()
		defer func() { c.Value.Stall = 0 }()
	}
	c.Unlock()
	return nil
}

// turns LABEL N: the first two callers hold the value in turn, N times at most.
// It stops where the turn goes to another process.
func (x *cast) turns(a *args) error {
	t, err := x.participant(a.next())
	n := a.number()
	if err != nil || a.err != nil {
		return err
	}
	cs := t.Value.Callers
	for i := range n {
		now, next := cs[i%2], cs[(i+1)%2]
		if now.Doing != world.Holding {
			x.wire.Say("%s %s after %d turns", now.Name, Does(now), i)
			return nil
		}
		next.Lock(process.Write, false)
		x.wire.Settle()
		now.Unlock()
		x.wire.Settle()
	}
	return nil
}
