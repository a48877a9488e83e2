package period

import (
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
)

// A calendar says when periods start. Starts are whole milliseconds, so a
// record holds them exactly.
type calendar interface {
	start(t time.Time) time.Time // the newest start that is not after t; the zero time: there is none
	next(t time.Time) time.Time  // the first start after t; the zero time: there is none
}

// fixed are periods of one length since 1970, moved by the offset.
type fixed struct{ every, offset time.Duration }

func (f fixed) start(t time.Time) time.Time {
	micros, every := t.Add(-f.offset).UnixMicro(), f.every.Microseconds()
	return time.UnixMicro(micros - (micros%every+every)%every).Add(f.offset).UTC()
}

func (f fixed) next(t time.Time) time.Time { return f.start(t).Add(f.every) }

// scheduled are the times of a schedule, moved by the offset. It is safe for
// concurrent use: mu guards all calls of the schedule and what follows it.
type scheduled struct {
	schedule Schedule
	offset   time.Duration

	mu          sync.Mutex
	from, until time.Time // a start and the one after it
}

// after returns the first start after t, or the zero time. A time that is not
// after t would be one that a faulty schedule repeats.
func (c *scheduled) after(t time.Time) time.Time {
	n := c.schedule.Next(t.Add(-c.offset))
	if n.IsZero() {
		return n
	}
	n = n.Add(c.offset + time.Millisecond - 1).Truncate(time.Millisecond).UTC()
	if !n.After(t) {
		return time.Time{}
	}
	return n
}

func (c *scheduled) next(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.after(t.UTC())
}

func (c *scheduled) start(t time.Time) time.Time {
	t = t.UTC()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() || t.Before(c.from) || !t.Before(c.until) {
		c.from, c.until = c.around(t)
	}
	return c.from
}

// around returns the newest start that is not after t, and the first one after
// t. A schedule looks only forward, so around looks further and further back
// until there is a start, and then closes in on the newest.
func (c *scheduled) around(t time.Time) (from, until time.Time) {
	by := func(n time.Time) bool { return !n.IsZero() && !n.After(t) }
	for back := time.Minute; !by(from); back *= 2 {
		if back > longest {
			return time.Time{}, c.after(t)
		}
		from = c.after(t.Add(-back))
	}
	// Invariant: from is a start, and the newest start is in [from, end]. Each
	// turn halves that. It takes 50 turns for fifty years; a schedule that
	// contradicts itself could take more.
	end := t
	for range 100 {
		until = c.after(from)
		if !by(until) {
			break
		}
		mid := from.Add(end.Sub(from) / 2)
		if n := c.after(mid); by(n) {
			from = n
		} else {
			from, end = until, mid
		}
	}
	return from, until
}

// check returns what is wrong with a schedule, as far as its times around now
// show it.
func (c *scheduled) check(now time.Time) error {
	if n := c.schedule.Next(now); !n.IsZero() && !n.After(now) {
		return fmt.Errorf("%w: the schedule's Next returns %v for %v: it must return a later time, "+
			"or the zero time if there is none", fault.ErrInvalid, n, now)
	}
	n := c.next(now)
	if n.IsZero() {
		if c.start(now).IsZero() {
			return fmt.Errorf("%w: the schedule never fires: check its day and its month", fault.ErrInvalid)
		}
		return nil
	}
	for _, t := range []time.Time{now.Add(n.Sub(now) / 2), n.Add(-time.Millisecond)} {
		if again := c.next(t); t.After(now) && !again.Equal(n) {
			return fmt.Errorf("%w: the schedule counts from the time at which it is asked, as @every of cron does, "+
				"so processes cannot agree on its times: use period.New with a length", fault.ErrInvalid)
		}
	}
	if gap := c.next(n).Sub(n); gap > 0 && gap < shortest {
		return fmt.Errorf("%w: the schedule fires %v after it has fired: leave at least %v between its times",
			fault.ErrInvalid, gap, shortest)
	}
	return nil
}
