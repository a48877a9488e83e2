package world

import "slices"

// This file owns which connections a process has.

// cables are all connections of one process.
type cables struct {
	Links   []*Link // to each node; more where an address leads to another server
	nowhere *Link   // stands for a member whose address leads to no server
}

func (c *cables) To(n *Node) *Link { return c.Links[n.Index] }

// Link is the connection of a number.
func (c *cables) Link(i int) *Link {
	for _, l := range c.Links {
		if l.No == i {
			return l
		}
	}
	return c.nowhere
}

// Cut holds up everything between a process and some nodes.
func (c *cables) Cut(ns ...*Node) {
	for _, n := range ns {
		c.To(n).Cut(Requests, Answers)
	}
}

func (c *cables) Mend(ns ...*Node) {
	for _, n := range ns {
		c.To(n).Heal(false)
	}
}

// AllAnswered: no request is under way.
func (c *cables) AllAnswered() bool {
	return !slices.ContainsFunc(c.Links, func(l *Link) bool { return l.pending > 0 })
}

// reaches: a question to the node would be answered.
func (c *cables) reaches(n *Node) bool {
	l := c.To(n)
	return l.Up && !n.Down && !n.Paused && !l.stalled[Requests] && !l.stalled[Answers]
}

// numbered returns which number the process gives to a node, -1 if the node is
// no member.
func (c *cables) Numbered(n *Node) int {
	if l := c.To(n); l.member() {
		return l.No
	}
	return -1
}
