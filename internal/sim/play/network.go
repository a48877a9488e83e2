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
func (x *cast) hold(a *args) error {
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		x.wire.Holds = append(x.wire.Holds, q)
	}
	return nil
}

// pass [PATTERN]: what matches waits no more. Without a pattern nothing waits.
func (x *cast) pass(a *args) error {
	if len(a.words) == 0 {
		x.wire.Holds = nil
		return nil
	}
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		kept := x.wire.Holds[:0]
		for _, h := range x.wire.Holds {
			if !q.Covers(h) {
				kept = append(kept, h)
			}
		}
		if len(kept) == len(x.wire.Holds) {
			return fmt.Errorf("nothing is held as %v", q)
		}
		x.wire.Holds = kept
	}
	return nil
}

// drop PATTERN: what is under way and matches never arrives.
func (x *cast) drop(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := x.wire.Find(q)
	for k, i := range at {
		x.wire.Flight = append(x.wire.Flight[:i-k:i-k], x.wire.Flight[i-k+1:]...)
	}
	return err
}

// repeat PATTERN: a request that is under way arrives a second time, later.
func (x *cast) repeat(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := x.wire.Find(q)
	for _, i := range at {
		e := x.wire.Flight[i]
		e.Kind = world.EvLate
		x.wire.Flight = append(x.wire.Flight, e)
	}
	return err
}

// underWay, the command flight: what is under way, but for questions about the
// time.
func (x *cast) underWay(*args) error {
	var s []string
	for _, e := range x.wire.Flight {
		if n := x.wire.Names.Of(e); n.Op != "time" && n.Op != "hello" && n.Op != "longest" {
			s = append(s, n.String())
		}
	}
	x.wire.Say("under way: %s", strings.Join(s, ", "))
	return nil
}

// advance DURATION: so much time passes.
func (x *cast) advance(a *args) error {
	d := a.duration()
	x.wire.Until((x.World.Now+course.Moment(500*time.Nanosecond))/1000*1000 + course.Moment(d))
	return a.err
}

// at DURATION: time passes until then.
func (x *cast) at(a *args) error {
	d := a.duration()
	x.wire.Until(x.wire.Began.Add(d))
	return a.err
}
