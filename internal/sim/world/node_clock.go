package world

import (
	"time"

	"github.com/quorate/quorate/internal/sim/course"
)

// nodeClock is the clock of a node: a wall clock, which may jump.
type nodeClock struct {
	course.Clock
	n *Node

	Wrong   time.Duration // by how much it has jumped in all
	leapAt  course.Moment // of the last time
	jumped  bool          // since then the node has had no new incarnation
	righted bool          // it was wrong, and was set right when the faults stopped
	SetBack time.Duration // what was stored before ends so much later
}

// newNodeClock returns a clock that is near those of the other nodes.
func newNodeClock(n *Node) nodeClock {
	c := nodeClock{n: n, Clock: course.NewClock(n.World.RNG, &n.World.Setting)}
	off := int64(0)
	if s := int64(n.World.Skew); s > 0 {
		off = c.Offset%(s+1) - s/2
	}
	c.Offset = int64(Epoch)*1000 + off
	return c
}

// Leap sets the clock forward or back. Leases end too early, or too late. A
// client that notices has the node begin a new incarnation. At most a minority
// of the nodes jumps within a time; a node that is alone may.
func (c *nodeClock) Leap(by time.Duration) {
	w := c.n.World
	recent := 0
	for _, o := range w.Nodes {
		if at := o.Clock.leapAt; at > 0 && w.Now < at.Add(2*w.Guard) {
			recent++
		}
	}
	if recent+1 > max(1, w.Spare()) || c.leapAt > 0 && w.Now < c.leapAt.Add(w.Guard) {
		return
	}
	c.Jump(by)
}

func (c *nodeClock) Jump(by time.Duration) {
	w := c.n.World
	w.Tape.Note("clock %d by %v", c.n.Index+1, by)
	w.Log("node %d: the clock jumps by %v", c.n.Index, by)
	w.Stats.Leaps++
	c.Offset += int64(by)
	c.SetBack += max(0, -by)
	c.Wrong += by
	c.leapAt = w.Now
	c.jumped = true
	w.Judge.Lost()
}

// Unsettled: leases that a jump has ended early may still run.
func (c *nodeClock) Unsettled() bool {
	w := c.n.World
	return c.jumped && w.Now < c.leapAt.Add(w.TTL+w.TTL/50)
}

// SetRight is what becomes of a clock that is wrong: it jumps once more.
func (c *nodeClock) SetRight() {
	w := c.n.World
	if c.Wrong.Abs() > w.TTL/2 {
		// A client that has heard nothing between two jumps that cancel
		// out cannot see them. And all that are wrong are set right at
		// one moment: that is a promise only where they are a minority,
		// also of a set that has got smaller since.
		c.righted = true
		w.Excused = w.Excused || c.jumped ||
			w.Decisions.Sets().Blocked(w.Decisions.Numbers(func(o *Node) bool { return o.Clock.righted }))
		c.Jump(-c.Wrong)
	}
}
