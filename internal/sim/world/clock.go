package world

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns clocks: true time, those of processes and nodes, and what
// becomes of a node's that jumps.

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

func newClock(r *rand.Rand, s *Setting) Clock {
	c := Clock{Offset: 1, Rate: 1 + s.Drift*(2*r.Float64()-1)}
	if r.IntN(2) == 0 && s.Drift > 0 { // the extremes matter most
		c.Rate = 1 + s.Drift*float64(2*r.IntN(2)-1)
	}
	if s.Offsets {
		c.Offset += r.Int64N(int64(time.Hour))
	}
	return c
}

// read returns what the clock shows at t.
func (c Clock) read(t Moment) int64 { return c.Offset + int64(float64(t)*c.Rate) }

// Local returns a process's reading.
func (c Clock) Local(t Moment) protocol.Time { return protocol.Time(c.read(t)) }

// Millis returns a node's reading.
func (c Clock) Millis(t Moment) int64 { return c.read(t) / int64(time.Millisecond) }

// micros is millis in microseconds.
func (c Clock) micros(t Moment) int64 { return c.read(t) / int64(time.Microsecond) }

// when returns the first moment at which the clock shows at least l.
func (c Clock) when(l protocol.Time) Moment {
	if l == protocol.Never {
		return Never
	}
	t := Moment(float64(int64(l)-c.Offset) / c.Rate)
	for c.Local(t) < l {
		t++
	}
	return t
}

// Leap sets the clock forward or back. Leases end too early, or too late. A
// client that notices has the node begin a new incarnation. At most a minority
// of the nodes jumps within a time; a node that is alone may.
func (n *Node) Leap(by time.Duration) {
	w := n.World
	recent := 0
	for _, o := range w.Nodes {
		if o.leapAt > 0 && w.Now < o.leapAt.Add(2*w.Guard) {
			recent++
		}
	}
	if recent+1 > max(1, w.Spare()) || n.leapAt > 0 && w.Now < n.leapAt.Add(w.Guard) {
		return
	}
	n.Jump(by)
}

func (n *Node) Jump(by time.Duration) {
	w := n.World
	w.Tape.note("clock %d by %v", n.Index+1, by)
	w.Log("node %d: the clock jumps by %v", n.Index, by)
	w.Stats.Leaps++
	n.Clock.Offset += int64(by)
	n.setBack += max(0, -by)
	n.Wrong += by
	n.leapAt = w.Now
	n.jumped = true
	w.Ledger.lost(w)
}

// unsettled: leases that a jump has ended early may still run.
func (n *Node) unsettled() bool {
	return n.jumped && n.World.Now < n.leapAt.Add(n.World.TTL+n.World.TTL/50)
}

// setRight is what becomes of a clock that is wrong: it jumps once more.
func (n *Node) setRight() {
	if n.Wrong.Abs() > n.World.TTL/2 {
		// A client that has heard nothing between two jumps that cancel
		// out cannot see them. And all that are wrong are set right at
		// one moment: that is a promise only where they are a minority,
		// also of a set that has got smaller since.
		n.righted = true
		n.World.excused = n.World.excused || n.jumped || n.World.sets().Blocked(n.World.numbers(func(o *Node) bool { return o.righted }))
		n.Jump(-n.Wrong)
	}
}
