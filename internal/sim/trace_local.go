package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/process"
)

// This file has the commands about the callers of one process, which share a
// value: see local.go. The option callers of nodes gives each process so many.
// e/2 is the second one of e. A caller does nothing by itself: it locks and
// unlocks when the trace says so.

// caller returns the caller of a label.
func (p *player) caller(label string) (*caller, error) {
	of, s, _ := strings.Cut(label, "/")
	no, err := strconv.Atoi(s)
	if err != nil || no < 1 || no > p.w.callers {
		return nil, fmt.Errorf("%q is no caller, such as e/1: see the option callers", label)
	}
	t, err := p.participant(of)
	if err != nil {
		return nil, err
	}
	return t.value.callers[no-1], nil
}

// lock CALLER [reader] [try]
func (p *player) lock(a *args) error {
	c, err := p.caller(a.next())
	if err != nil {
		return err
	}
	mode := process.Write
	if a.take("reader") {
		mode = process.Read
	}
	if c.doing != resting {
		return fmt.Errorf("%s %s", c.name, c.does())
	}
	c.lock(mode, a.take("try"))
	return nil
}

// unlock CALLER [late DURATION]: late, it reads the clock so much later than
// the claim is looked at. unlock LABEL is by mistake: a goroutine that does not
// hold the value unlocks it.
func (p *player) unlock(a *args) error {
	label := a.next()
	if !strings.Contains(label, "/") {
		t, err := p.participant(label)
		if err == nil && t.value.unlock(process.Write) == process.UnlockNotHeld {
			p.say("%s is not held", label)
		}
		return err
	}
	c, err := p.caller(label)
	switch {
	case err != nil:
		return err
	case c.doing != holding:
		return fmt.Errorf("%s %s", c.name, c.does())
	}
	if a.take("late") {
		c.v.stall = a.duration()
		defer func() { c.v.stall = 0 }()
	}
	c.unlock()
	return a.err
}

// turns LABEL N: the first two callers hold the value in turn, N times at most.
// It stops where the turn goes to another process.
func (p *player) turns(a *args) error {
	t, err := p.participant(a.next())
	n := a.number()
	if err != nil || a.err != nil {
		return err
	}
	cs := t.value.callers
	for i := range n {
		now, next := cs[i%2], cs[(i+1)%2]
		if now.doing != holding {
			p.say("%s %s after %d turns", now.name, now.does(), i)
			return nil
		}
		next.lock(process.Write, false)
		p.settle()
		now.unlock()
		p.settle()
	}
	return nil
}
