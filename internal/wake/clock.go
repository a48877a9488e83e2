package wake

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Clock is the clock by which this process judges its leases. It never goes
// back, it does not follow the wall clock when that is set, and on Linux it
// counts the time for which the machine was suspended. It is safe for
// concurrent use.
//
// Go's monotonic clock does not count the time of a suspension. CLOCK_BOOTTIME
// does, but reading it is a system call and takes 150 ns instead of 30. So
// Clock reads it only if the difference between the wall clock and the
// monotonic clock has changed.
type Clock struct {
	base atomic.Pointer[clockBase]
	mu   sync.Mutex // held while base is replaced
	// slept returns how long the machine has been suspended in all, counted
	// from some moment in the past. ok is false if the system does not say.
	slept func() (d time.Duration, ok bool)
}

// clockBase is one moment that a Clock counts from. It is never written to.
type clockBase struct {
	at    protocol.Time // what the clock showed
	when  time.Time     // with a monotonic reading
	wall  int64         // the wall clock, in nanoseconds
	slept time.Duration
	known bool          // slept has been read
	woke  protocol.Time // when the latest sleep ended
}

// steady is how much the difference between the wall clock and the monotonic
// clock may change before CLOCK_BOOTTIME is read. A lease allows for an error
// of 2 ms.
const steady = time.Millisecond

func NewClock() *Clock { return clockOf(slept) }

func clockOf(slept func() (time.Duration, bool)) *Clock {
	c := &Clock{slept: slept}
	b := &clockBase{}
	for range 20 { // a read may fail
		if b.slept, b.known = slept(); b.known {
			break
		}
	}
	c.base.Store(b.from(protocol.Time(time.Millisecond))) // 0 is not a time
	return c
}

// from returns a base for this moment, at which the clock shows at.
func (b *clockBase) from(at protocol.Time) *clockBase {
	t := time.Now()
	return &clockBase{at: at, when: t, wall: t.UnixNano(), slept: b.slept, known: b.known, woke: b.woke}
}

// Now returns the time, which is never 0.
func (c *Clock) Now() protocol.Time {
	t, b := time.Now(), c.base.Load()
	past := t.Sub(b.when)
	if d := time.Duration(t.UnixNano()-b.wall) - past; d > steady || d < -steady {
		return c.CountSleep()
	}
	return b.at.Add(past)
}

// CountSleep checks whether the machine was suspended, adds the time of the
// suspension to the clock, and returns the time.
func (c *Clock) CountSleep() protocol.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.base.Load()
	b := was.from(was.at)
	b.at = was.at.Add(b.when.Sub(was.when))
	switch d, ok := c.slept(); {
	case !ok:
	// Only the difference between two reads counts as sleep.
	case !was.known:
		b.slept, b.known = d, true
	case d-was.slept > steady:
		b.at, b.slept = b.at.Add(d-was.slept), d
		b.woke = b.at
	}
	c.base.Store(b)
	return b.at
}

// When returns the wall-clock time that corresponds to t.
func (c *Clock) When(t protocol.Time) time.Time {
	b := c.base.Load()
	return b.when.Add(t.Sub(b.at))
}

// Slept returns when the latest sleep ended (0 if there was none) and the sum
// of all sleeps. The difference of two sums is how long the machine slept in
// between.
func (c *Clock) Slept() (ended protocol.Time, sum time.Duration) {
	b := c.base.Load()
	return b.woke, b.slept
}

// Suspend has the same effect on the clock as suspending the machine for d: the
// monotonic clock stands still. It is for tests.
func (c *Clock) Suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.slept
	c.slept = func() (time.Duration, bool) {
		s, _ := before()
		return s + d, true
	}
	b := *c.base.Load()
	b.known = true // even if the system does not say
	b.wall -= int64(d)
	c.base.Store(&b)
}
