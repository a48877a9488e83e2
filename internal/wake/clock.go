package wake

// This file owns the clock of the deadlines.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Clock is the clock by which this process judges its leases. It never goes
// back, setting the wall clock does not move it, and on Linux it counts the
// time for which the machine was suspended. It is safe for concurrent use.
//
// Go's monotonic clock stands still then. CLOCK_BOOTTIME does not, but to read
// it is a system call, 150 ns instead of 30. So it is read only when the
// difference of the wall clock and the monotonic one has changed.
type Clock struct {
	base atomic.Pointer[clockBase]
	mu   sync.Mutex // held by the one that replaces base
	// slept returns for how long the machine was suspended since some moment in
	// the past; not ok where the system does not say.
	slept func() (d time.Duration, ok bool)
}

// clockBase is one moment of a Clock to count from, never written to.
type clockBase struct {
	at    protocol.Time // what the clock showed
	when  time.Time     // with a monotonic reading
	wall  int64         // the wall clock, in nanoseconds
	slept time.Duration
	known bool          // slept was read
	woke  protocol.Time // when the latest sleep ended
}

// steady is by how much the difference of wall clock and monotonic clock may
// change without a look at CLOCK_BOOTTIME. A lease bears 2 ms.
const steady = time.Millisecond

func NewClock() *Clock { return clockOf(slept) }

func clockOf(slept func() (time.Duration, bool)) *Clock {
	c := &Clock{slept: slept}
	b := &clockBase{}
	for range 20 { // slept may fail
		if b.slept, b.known = slept(); b.known {
			break
		}
	}
	c.base.Store(b.from(protocol.Time(time.Millisecond))) // 0 is not a time
	return c
}

// from returns the base of this moment, at which the clock shows at.
func (b *clockBase) from(at protocol.Time) *clockBase {
	t := time.Now()
	return &clockBase{at: at, when: t, wall: t.UnixNano(), slept: b.slept, known: b.known, woke: b.woke}
}

// Now is a time that is not 0.
func (c *Clock) Now() protocol.Time {
	t, b := time.Now(), c.base.Load()
	past := t.Sub(b.when)
	if d := time.Duration(t.UnixNano()-b.wall) - past; d > steady || d < -steady {
		return c.CountSleep()
	}
	return b.at.Add(past)
}

// CountSleep finds out whether the machine was suspended, and counts that.
func (c *Clock) CountSleep() protocol.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.base.Load()
	b := was.from(was.at)
	b.at = was.at.Add(b.when.Sub(was.when))
	switch d, ok := c.slept(); {
	case !ok:
	// Invariant: only a difference of two reads is sleep.
	case !was.known:
		b.slept, b.known = d, true
	case d-was.slept > steady:
		b.at, b.slept = b.at.Add(d-was.slept), d
		b.woke = b.at
	}
	c.base.Store(b)
	return b.at
}

// When is the wall clock at a time of this clock.
func (c *Clock) When(t protocol.Time) time.Time {
	b := c.base.Load()
	return b.when.Add(t.Sub(b.at))
}

// Slept returns when the latest sleep ended, 0 if there was none, and a sum of
// all sleeps: the difference of two sums is how long the machine slept between.
func (c *Clock) Slept() (ended protocol.Time, sum time.Duration) {
	b := c.base.Load()
	return b.woke, b.slept
}

// Suspend does to the clock what suspending the machine does: the monotonic
// clock stands still. It is for tests.
func (c *Clock) Suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.slept
	c.slept = func() (time.Duration, bool) {
		s, _ := before()
		return s + d, true
	}
	b := *c.base.Load()
	b.known = true // where the system does not say it, too
	b.wall -= int64(d)
	c.base.Store(&b)
}
