package sim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a trace says of claims, of callers and of a node.

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

// clockTime names a reading of a clock by the trace's time.
func clockTime(c clock, t protocol.Time) string {
	m := c.when(t)
	if m == never {
		return "never"
	}
	return seconds(time.Duration(m) - time.Second)
}

// status is a claim in a line.
func (a *attempt) status() string {
	s := fmt.Sprintf("%v %s, ticket %s", a, phases[a.Phase()], ticketName(a.Ticket()))
	if a.Phase() == lease.Holding {
		s += ", until " + clockTime(a.part.proc.clock, a.Deadline())
	}
	return s
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

// does is what a trace says of a caller.
func (c *caller) does() string {
	switch c.doing {
	case waiting:
		return "waits"
	case acquiring:
		return "gets the claim"
	case resting:
		return "has nothing"
	}
	s := "holds"
	if c.mode == process.Read {
		s = "reads"
	}
	if c.lease.ended {
		return s + " no more, and knows"
	}
	return fmt.Sprintf("%s, token %s.%d", s, ticketName(c.lease.a.Ticket()), c.lease.n)
}

// head is what a node shows an onlooker.
func (n *node) head() (h lease.Head) {
	now := n.millis(n.w.now)
	h.Known = n.model.Recovering(now) == 0
	for _, c := range n.model.Claims(now) {
		if c.Voted {
			h.Voted = append(h.Voted, string(c.ID[:]))
		}
	}
	if n.model.Plain(now) == "rival" {
		h.Foreign = time.Second
	}
	return h
}
