package world

import (
	"fmt"
	"strconv"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// The words used in traces: the names of messages (which are the same each time
// a schedule is played), tickets, answers and phases.

// Parcel names what is under way: a request, its answer, or a push.
type Parcel struct {
	Kind     kind
	From, To string
	Op       string
	No       int // of the same kind; 0 in a pattern: any
}

func (p Parcel) String() string {
	s := Prefixes[p.Kind] + p.From + ">" + p.To
	if p.Op != "" {
		s += " " + p.Op
	}
	if p.No > 1 {
		s += fmt.Sprintf("#%d", p.No)
	}
	return s
}

// words stand before the names of what is neither a request, nor an answer, nor
// a push.
var Prefixes = map[kind]string{EvLate: "late ", evFail: "failure ", EvUp: "up ", EvDown: "down "}

// Covers reports whether the pattern p stands for o.
func (p Parcel) Covers(o Parcel) bool {
	same := func(a, b string) bool { return a == "*" || a == b }
	kinds := p.Kind == o.Kind || p.Kind == EvRequest && o.Kind <= evPush && o.Kind != EvLate && o.Kind != evFail
	return kinds && same(p.From, o.From) && same(p.To, o.To) && (p.Op == "" || p.Op == o.Op) &&
		(p.No == 0 || p.No == o.No)
}

// exact is the name of one message and of no other.
func (p Parcel) exact() string {
	if p.No == 1 && p.Op != "" {
		return p.String() + "#1"
	}
	return p.String()
}

// Names gives what is sent a name that is the same in each play.
type Names struct {
	sent map[Parcel]int
}

// Of returns the name of a message. The first call numbers it.
func (n *Names) Of(e Event) Parcel {
	if e.Kind == EvTimer {
		return Parcel{Kind: e.Kind, From: e.Att.Part.Label()}
	}
	m := e.M
	node := fmt.Sprint(m.Link.Index + 1)
	p := Parcel{From: m.Link.Proc.Label, To: node}
	switch {
	case e.Kind == EvUp || e.Kind == EvDown:
		p.Kind = e.Kind
		return p
	case m.push != nil:
		p.Op = "push"
		for _, t := range m.Link.Proc.Parts {
			if t.Att != nil && t.Att.Claim.State.ID == m.push.ID {
				p.From = t.Label()
			}
		}
	case m.att != nil:
		p.From, p.Op = m.att.Part.Label(), m.Req.Op.String()
	case m.inq != nil:
		p.Op = m.Req.Op.String()
	case m.question != nil:
		p.Op = m.question.op
	default:
		p.Op = m.about.String()
	}
	if m.no == 0 {
		if n.sent == nil {
			n.sent = map[Parcel]int{}
		}
		n.sent[p]++
		m.no, m.from = n.sent[p], p.From
	}
	p.Kind, p.No, p.From = e.Kind, m.no, m.from
	if e.Kind == EvAnswer || e.Kind == evPush {
		p.From, p.To = p.To, p.From
	}
	return p
}

// TicketName leaves out what all tickets have in common.
func TicketName(t protocol.Ticket) string {
	if t > Epoch/2 && t < 2*Epoch {
		return fmt.Sprintf("%+d", int64(t)-int64(Epoch))
	}
	return strconv.FormatUint(uint64(t), 10)
}

func VersionName(v protocol.Version) string {
	if v == (protocol.Version{}) {
		return "nothing"
	}
	return fmt.Sprintf("%s.%d", TicketName(v.Ticket), v.Seq)
}

func AnswerName(r protocol.Request, a protocol.Answer) string {
	if e := a.Record; e != nil {
		return fmt.Sprintf("%v %s promise %s whole=%t", a.Status, VersionName(e.Version),
			VersionName(e.Promise), e.CaughtUp)
	}
	if a.Status != protocol.OK || r.Op == protocol.OpLeave {
		return a.Status.String()
	}
	s := TicketName(a.Ticket)
	if a.Vote {
		s += " vote"
	}
	if a.HasTotals {
		s += fmt.Sprintf(" below=%d/%x", a.Sum, a.Digest>>36)
	}
	if a.Wait > 0 {
		s += " hint " + a.Wait.String()
	}
	return s
}

// PhaseName is that of traces.
func PhaseName(p lease.Phase) string {
	return [...]string{"joining", "waiting", "HOLDING", "LOST", "left", "taken", "no quorum",
		"rejected", "lapsed", "too heavy"}[p]
}
