package sim

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns clocks: true time, those of processes and nodes, and what
// becomes of a node's that jumps.

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

// micros is millis in microseconds.
func (c clock) micros(t moment) int64 { return c.read(t) / int64(time.Microsecond) }

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

// leap sets the clock forward or back. Leases end too early, or too late. A
// client that notices has the node begin a new incarnation. At most a minority
// of the nodes jumps within a time; a node that is alone may.
func (n *node) leap(by time.Duration) {
	w := n.w
	recent := 0
	for _, o := range w.nodes {
		if o.leapAt > 0 && w.now < o.leapAt.add(2*w.guard) {
			recent++
		}
	}
	if recent+1 > max(1, w.spare()) || n.leapAt > 0 && w.now < n.leapAt.add(w.guard) {
		return
	}
	n.jump(by)
}

func (n *node) jump(by time.Duration) {
	w := n.w
	w.tape.note("clock %d by %v", n.idx+1, by)
	w.log("node %d: the clock jumps by %v", n.idx, by)
	w.stats.Leaps++
	n.clock.offset += int64(by)
	n.setBack += max(0, -by)
	n.wrong += by
	n.leapAt = w.now
	n.jumped = true
	w.ledger.lost(w)
}

// unsettled: leases that a jump has ended early may still run.
func (n *node) unsettled() bool {
	return n.jumped && n.w.now < n.leapAt.add(n.w.ttl+n.w.ttl/50)
}

// setRight is what becomes of a clock that is wrong: it jumps once more.
func (n *node) setRight() {
	if n.wrong.Abs() > n.w.ttl/2 {
		// A client that has heard nothing between two jumps that cancel
		// out cannot see them. And all that are wrong are set right at
		// one moment: that is a promise only where they are a minority,
		// also of a set that has got smaller since.
		n.righted = true
		n.w.excused = n.w.excused || n.jumped || n.w.sets().Blocked(n.w.numbers(func(o *node) bool { return o.righted }))
		n.jump(-n.wrong)
	}
}
