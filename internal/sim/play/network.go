package play

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/world"
)

// Commands about messages and time.

// hold PATTERN: what matches waits from now on.
func (x *Wire) hold(a *args) error {
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		x.Holds = append(x.Holds, q)
	}
	return nil
}

// pass [PATTERN]: what matches waits no more. Without a pattern nothing waits.
func (x *Wire) pass(a *args) error {
	if len(a.words) == 0 {
		x.Holds = nil
		return nil
	}
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		kept := x.Holds[:0]
		for _, h := range x.Holds {
			if !q.Covers(h) {
				kept = append(kept, h)
			}
		}
		if len(kept) == len(x.Holds) {
			return fmt.Errorf("nothing is held as %v", q)
		}
		x.Holds = kept
	}
	return nil
}

// drop PATTERN: what is under way and matches never arrives.
func (x *Wire) drop(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := x.Find(q)
	for k, i := range at {
		x.Flight = append(x.Flight[:i-k:i-k], x.Flight[i-k+1:]...)
	}
	return err
}

// repeat PATTERN: a request that is under way arrives a second time, later.
func (x *Wire) repeat(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := x.Find(q)
	for _, i := range at {
		e := x.Flight[i]
		e.Kind = world.EvLate
		x.Flight = append(x.Flight, e)
	}
	return err
}

// underWay, the command flight: what is under way, but for questions about the
// time.
func (x *Wire) underWay(*args) error {
	var s []string
	for _, e := range x.Flight {
		if n := x.Names.Of(e); n.Op != "time" && n.Op != "hello" && n.Op != "longest" {
			s = append(s, n.String())
		}
	}
	x.Say("under way: %s", strings.Join(s, ", "))
	return nil
}

// advance DURATION: so much time passes.
func (x *Wire) advance(a *args) error {
	d := a.duration()
	x.Until((x.World.Now+course.Moment(500*time.Nanosecond))/1000*1000 + course.Moment(d))
	return nil
}

// at DURATION: time passes until then.
func (x *Wire) at(a *args) error {
	d := a.duration()
	x.Until(x.Began.Add(d))
	return nil
}
