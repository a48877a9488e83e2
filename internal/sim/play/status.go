package play

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/world"
)

// What a trace prints about claims and nodes.

// changes says which claims have other tickets or deadlines than was said.
func (c *cast) changes() {
	for t := range c.World.Participants() {
		a := t.Att
		if a == nil || t == t.Proc.Follower.Succession {
			continue
		}
		c.note(t)
		g := c.wire.Seen[a]
		if near := g.Deadline.Sub(a.Claim.Deadline()).Abs() < time.Millisecond; g.Phase != a.Claim.State.Phase() ||
			g.Ticket != a.Claim.State.Ticket() || a.Claim.State.Phase() == lease.Holding && !near {
			c.wire.Note(a)
			c.wire.Say("%s", Status(a))
		}
	}
}

// kept is what a node keeps.
func (c *cast) kept(n *world.Node) string {
	w := c.World
	now := n.Millis()
	s := fmt.Sprintf("node %d:", n.Index+1)
	switch {
	case n.Down:
		return s + " down"
	case n.Paused:
		s += " stopped;"
	}
	if d := n.Model.Recovering(now); d > 0 {
		s += " recovering for " + Seconds(d) + ";"
	}
	for i := range w.Checks.Of {
		for _, e := range n.Data(i).Claims(now) {
			s += fmt.Sprintf(" %s %s", c.name(e.ID), world.TicketName(e.Ticket))
			if e.Voted {
				s += " vote"
			}
			s += fmt.Sprintf(" for %s;", Seconds(time.Duration(e.Expiry-now)*time.Millisecond))
		}
	}
	if k := n.Data(0).Redlock.Value(now); k == "rival" {
		s += " the rival's key;"
	}
	if r := n.Data(0).Recorded(); r.Version != (protocol.Version{}) {
		s += " record " + storedName(r) + ";"
	}
	if limit, at := n.Data(0).Limit(); at > 0 {
		s += fmt.Sprintf(" %d permits;", limit)
	}
	if k := len(n.Names); k > 0 {
		s += fmt.Sprintf(" %d names;", k)
	}
	if !n.Model.CaughtUp() {
		s += " not caught up;"
	}
	switch n.Model.Set().Phase {
	case nodeset.SetAccepted:
		s += " set accepted;"
	case nodeset.SetRecorded:
		if c := n.Model.Set().Config; n.World.Decisions.Latest().Stamp.Epoch() > 1 {
			s += fmt.Sprintf(" epoch %d %v;", c.Stamp.Epoch(), c.Stage)
		} else {
			s += " set recorded;"
		}
	}
	return s + " fence " + world.TicketName(n.Data(0).Fence())
}

// name is the label of the claim with that id.
func (c *cast) name(id protocol.ID) string {
	for t := range c.World.Participants() {
		if t.Att != nil && t.Att.Claim.State.ID == id {
			return t.Att.String()
		}
	}
	return "a claim of before"
}
