package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a trace prints of claims and nodes.

func storedName(s protocol.Stored) string {
	switch {
	case s.Version == protocol.Version{}:
		return "nothing"
	case s.Erased:
		return "erased at " + versionName(s.Version)
	}
	return fmt.Sprintf("%s at %s", s.Value, versionName(s.Version))
}

// changes says which claims have other tickets or deadlines than was said.
func (c *cast) changes() {
	for t := range c.w.participants() {
		a := t.att
		if a == nil || t == t.proc.succession {
			continue
		}
		c.note(t)
		g := c.seen[a]
		if near := g.deadline.Sub(a.Deadline()).Abs() < time.Millisecond; g.phase != a.Phase() || g.ticket != a.Ticket() || a.Phase() == lease.Holding && !near {
			c.wire.note(a)
			c.say("%s", a.status())
		}
	}
}

// kept is what a node keeps.
func (c *cast) kept(n *node) string {
	w := c.w
	now := n.millis(c.w.now)
	s := fmt.Sprintf("node %d:", n.idx+1)
	switch {
	case n.down:
		return s + " down"
	case n.paused:
		s += " stopped;"
	}
	if d := n.model.Recovering(now); d > 0 {
		s += " recovering for " + seconds(d) + ";"
	}
	for i := range w.of {
		for _, e := range n.data(i).Claims(now) {
			s += fmt.Sprintf(" %s %s", c.name(e.ID), ticketName(e.Ticket))
			if e.Voted {
				s += " vote"
			}
			s += fmt.Sprintf(" for %s;", seconds(time.Duration(e.Expiry-now)*time.Millisecond))
		}
	}
	if k := n.model.Plain(now); k == "rival" {
		s += " the rival's key;"
	}
	if r := n.model.Recorded(); r.Version != (protocol.Version{}) {
		s += " record " + storedName(r) + ";"
	}
	if limit, at := n.model.Limit(); at > 0 {
		s += fmt.Sprintf(" %d permits;", limit)
	}
	if k := len(n.names); k > 0 {
		s += fmt.Sprintf(" %d names;", k)
	}
	if !n.model.CaughtUp() {
		s += " not caught up;"
	}
	switch n.model.Set().Phase {
	case nodeset.SetAccepted:
		s += " set accepted;"
	case nodeset.SetRecorded:
		if c := n.model.Set().Config; n.w.latest().Stamp.Epoch() > 1 {
			s += fmt.Sprintf(" epoch %d %v;", c.Stamp.Epoch(), c.Stage)
		} else {
			s += " set recorded;"
		}
	}
	return s + " fence " + ticketName(n.model.Fence())
}

// name is the label of the claim with that id.
func (c *cast) name(id protocol.ID) string {
	for t := range c.w.participants() {
		if t.att != nil && t.att.ID == id {
			return t.att.String()
		}
	}
	return "a claim of before"
}
