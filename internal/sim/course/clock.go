package course

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Clocks: true time, and the clocks of processes and nodes.

// Moment is true time in nanoseconds. No process in the simulation can read it.
type Moment int64

const Never = Moment(1<<63 - 1)

func (t Moment) Add(d time.Duration) Moment { return t + Moment(d) }

// Clock is a process's or a node's clock: it started at another time than true
// time did, and runs a little fast or slow.
type Clock struct {
	Offset int64
	Rate   float64
}

func NewClock(r *rand.Rand, s *Setting) Clock {
	c := Clock{Offset: 1, Rate: 1 + s.Drift*(2*r.Float64()-1)}
	if r.IntN(2) == 0 && s.Drift > 0 { // the extremes matter most
		c.Rate = 1 + s.Drift*float64(2*r.IntN(2)-1)
	}
	if s.Offsets {
		c.Offset += r.Int64N(int64(time.Hour))
	}
	return c
}

// Read returns what the clock shows at t.
func (c Clock) Read(t Moment) int64 { return c.Offset + int64(float64(t)*c.Rate) }

// Local returns a process's reading.
func (c Clock) Local(t Moment) protocol.Time { return protocol.Time(c.Read(t)) }

// Millis returns a node's reading.
func (c Clock) Millis(t Moment) int64 { return c.Read(t) / int64(time.Millisecond) }

// Micros is Millis in microseconds.
func (c Clock) Micros(t Moment) int64 { return c.Read(t) / int64(time.Microsecond) }

// When returns the first moment at which the clock shows at least l.
func (c Clock) When(l protocol.Time) Moment {
	if l == protocol.Never {
		return Never
	}
	t := Moment(float64(int64(l)-c.Offset) / c.Rate)
	for c.Local(t) < l {
		t++
	}
	return t
}
