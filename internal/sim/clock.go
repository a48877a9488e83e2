package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// moment is true time in nanoseconds. No process in the simulation can read it.
type moment int64

const never = moment(1<<63 - 1)

func (t moment) add(d time.Duration) moment { return t + moment(d) }

// clock is a process's or a node's clock: it started at another time than true
// time did, and runs a little fast or slow.
type clock struct {
	offset int64
	rate   float64
}

func newClock(r *rand.Rand, s *setting) clock {
	c := clock{offset: 1, rate: 1 + s.drift*(2*r.Float64()-1)}
	if r.IntN(2) == 0 && s.drift > 0 { // the extremes matter most
		c.rate = 1 + s.drift*float64(2*r.IntN(2)-1)
	}
	if s.offsets {
		c.offset += r.Int64N(int64(time.Hour))
	}
	return c
}

// read returns what the clock shows at t.
func (c clock) read(t moment) int64 { return c.offset + int64(float64(t)*c.rate) }

// local returns a process's reading.
func (c clock) local(t moment) protocol.Time { return protocol.Time(c.read(t)) }

// millis returns a node's reading.
func (c clock) millis(t moment) int64 { return c.read(t) / int64(time.Millisecond) }

// when returns the first moment at which the clock shows at least l.
func (c clock) when(l protocol.Time) moment {
	if l == protocol.Never {
		return never
	}
	t := moment(float64(int64(l)-c.offset) / c.rate)
	for c.local(t) < l {
		t++
	}
	return t
}
