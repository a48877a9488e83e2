package world

import "time"

// This file owns what becomes of the clock of a node that jumps.

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
	w.Tape.Note("clock %d by %v", n.Index+1, by)
	w.Log("node %d: the clock jumps by %v", n.Index, by)
	w.Stats.Leaps++
	n.Clock.Offset += int64(by)
	n.SetBack += max(0, -by)
	n.Wrong += by
	n.leapAt = w.Now
	n.jumped = true
	w.Judge.Lost()
}

// unsettled: leases that a jump has ended early may still run.
func (n *Node) Unsettled() bool {
	return n.jumped && n.World.Now < n.leapAt.Add(n.World.TTL+n.World.TTL/50)
}

// setRight is what becomes of a clock that is wrong: it jumps once more.
func (n *Node) SetRight() {
	if n.Wrong.Abs() > n.World.TTL/2 {
		// A client that has heard nothing between two jumps that cancel
		// out cannot see them. And all that are wrong are set right at
		// one moment: that is a promise only where they are a minority,
		// also of a set that has got smaller since.
		n.righted = true
		n.World.Excused = n.World.Excused || n.jumped || n.World.Sets().Blocked(n.World.Numbers(func(o *Node) bool { return o.righted }))
		n.Jump(-n.Wrong)
	}
}
