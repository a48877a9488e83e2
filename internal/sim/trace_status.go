package sim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
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

// phases are what a trace says of a claim.
var phases = map[lease.Phase]string{
	lease.Joining: "joins", lease.Waiting: "waits", lease.Holding: "holds", lease.Lost: "is lost",
	lease.Left: "has left", lease.Busy: "gives up, as others are ahead", lease.NoQuorum: "gives up without a quorum",
	lease.Rejected: "is refused", lease.Expired: "is abandoned", lease.TooHeavy: "asks for more than there is",
}

// seconds prints a time of the trace, to the millisecond.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64) + "s"
}

// status is a claim in a line.
func (a *attempt) status() string {
	s := fmt.Sprintf("%v %s, ticket %s", a, phases[a.Phase()], ticketName(a.Ticket()))
	if a.Phase() == lease.Holding {
		s += ", until " + clockTime(a.part.proc.clock, a.Deadline())
	}
	return s
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

// view is what a claim knows of the nodes.
func (a *attempt) view() string {
	var on, votes []string
	for i := range int(a.Nodes) {
		holds, vote := a.Node(i, a.local())
		if holds {
			on = append(on, strconv.Itoa(i+1))
		}
		if vote {
			votes = append(votes, strconv.Itoa(i+1))
		}
	}
	none := func(s []string) string { return cmp.Or(strings.Join(s, " "), "none") }
	return fmt.Sprintf("%s; known to %s, votes of %s", a.status(), none(on), none(votes))
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

// clockTime names a reading of a clock by the trace's time.
func clockTime(c clock, t protocol.Time) string {
	m := c.when(t)
	if m == never {
		return "never"
	}
	return seconds(time.Duration(m) - time.Second)
}
