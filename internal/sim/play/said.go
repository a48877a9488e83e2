package play

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
	"github.com/quorate/quorate/internal/sim/world"
)

// What a trace says about claims, callers and nodes.

// phases are what a trace says of a claim.
var phases = map[lease.Phase]string{
	lease.Joining: "joins", lease.Waiting: "waits", lease.Holding: "holds", lease.Lost: "is lost",
	lease.Left: "has left", lease.Busy: "gives up, as others are ahead",
	lease.NoQuorum: "gives up without a quorum",
	lease.Rejected: "is refused", lease.Expired: "is abandoned", lease.TooHeavy: "asks for more than there is",
}

// Seconds prints a time of the trace, to the millisecond.
func Seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64) + "s"
}

// ClockTime names a reading of a clock by the trace's time.
func ClockTime(c course.Clock, t protocol.Time) string {
	m := c.When(t)
	if m == course.Never {
		return "never"
	}
	return Seconds(time.Duration(m) - time.Second)
}

// Status is a claim in a line.
func Status(a *world.Attempt) string {
	s := fmt.Sprintf("%v %s, ticket %s", a, phases[a.Claim.State.Phase()], world.TicketName(a.Claim.State.Ticket()))
	if a.Claim.State.Phase() == lease.Holding {
		s += ", until " + ClockTime(a.Part.Proc.Clock, a.Claim.Deadline())
	}
	return s
}

// View is what a claim knows of the nodes.
func View(a *world.Attempt) string {
	var on, votes []string
	for i := range int(a.Claim.State.Nodes) {
		holds, vote := a.Claim.State.Node(i, a.Now())
		if holds {
			on = append(on, strconv.Itoa(i+1))
		}
		if vote {
			votes = append(votes, strconv.Itoa(i+1))
		}
	}
	none := func(s []string) string { return cmp.Or(strings.Join(s, " "), "none") }
	return fmt.Sprintf("%s; known to %s, votes of %s", Status(a), none(on), none(votes))
}

// Does is what a trace says of a caller.
func Does(c *world.Caller) string {
	switch c.Doing {
	case world.Waiting:
		return "waits"
	case world.Acquiring:
		return "gets the claim"
	case world.Resting:
		return "has nothing"
	}
	s := "holds"
	if c.Mode == process.Read {
		s = "reads"
	}
	if c.Lease.Ended {
		return s + " no more, and knows"
	}
	return fmt.Sprintf("%s, token %s.%d", s, world.TicketName(c.Lease.Att.Claim.State.Ticket()), c.Lease.N)
}

// Head is what a node shows an onlooker.
func Head(n *world.Node) (h lease.Head) {
	now := n.Millis()
	h.Known = n.Model.Recovering(now) == 0
	for _, c := range n.Data(0).Claims(now) {
		if c.Voted {
			h.Voted = append(h.Voted, string(c.ID[:]))
		}
	}
	if n.Data(0).Redlock.Value(now) == "rival" {
		h.Foreign = time.Second
	}
	return h
}
