package sim

import "slices"

// This file owns which connections a process has.

// cables are all connections of one process.
type cables struct {
	links   []*link // to each node; more where an address leads to another server
	nowhere *link   // stands for a member whose address leads to no server
}

func (c *cables) to(n *node) *link { return c.links[n.idx] }

// link is the connection of a number.
func (c *cables) link(i int) *link {
	for _, l := range c.links {
		if l.no == i {
			return l
		}
	}
	return c.nowhere
}

// cut holds up everything between a process and some nodes.
func (c *cables) cut(ns ...*node) {
	for _, n := range ns {
		c.to(n).cut(requests, answers)
	}
}

func (c *cables) mend(ns ...*node) {
	for _, n := range ns {
		c.to(n).heal(false)
	}
}

// allAnswered: no request is under way.
func (c *cables) allAnswered() bool {
	return !slices.ContainsFunc(c.links, func(l *link) bool { return l.pending > 0 })
}

// reaches: a question to the node would be answered.
func (c *cables) reaches(n *node) bool {
	l := c.to(n)
	return l.up && !n.down && !n.paused && !l.stalled[requests] && !l.stalled[answers]
}

// numbered returns which number the process gives to a node, -1 if the node is
// no member.
func (c *cables) numbered(n *node) int {
	if l := c.to(n); l.member() {
		return l.no
	}
	return -1
}
