package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a process asks of a node beside its claims, what the node
// says of its set then, and what the simulation knows of clocks: which have
// jumped, and whether a process could see that.

// about is what a message is about.
type about uint8

const (
	claims   about = iota // or records
	hello                 // how a connection begins: the node's incarnation, and its time
	theTime               // the node's
	thatMark              // the node shall begin a new incarnation if it still has the one of req.Ticket; 0: if its marker is of another run
	repairs               // a step of a repair
	moves                 // a step of the register of the node's set
	theSet                // what the node keeps of its set
)

func (a about) String() string {
	return [...]string{"claims", "hello", "time", "mark", "repairing", "move", "set"}[a]
}

// attend does what is asked of a node outside any claim.
func (n *node) attend(m *message) protocol.Answer {
	w := n.w
	inc, _ := n.model.Incarnation()
	_, marked := n.model.Incarnation()
	set := n.model.Set()
	switch asks := m.about == hello || m.about == thatMark || m.about == theTime; {
	case asks && n.lie == nil && m.link.proc.members != nil && (m.stamp != set.Stamp() || !marked):
		return protocol.Answer{Status: protocol.OtherSet, Clock: n.micros(w.now)}
	case m.about == repairs:
		m.task.res = n.repairStep(m)
	case m.about == thatMark && (protocol.Incarnation(m.req.Ticket) == inc || m.req.Ticket == 0 && n.replica):
		w.log("process %s has node %d marked", m.link.proc.name, n.idx)
		if !n.jumped && !n.replica && !n.back {
			w.fail("silenced", "process %s has node %d marked, whose clock has not jumped", m.link.proc.name, n.idx)
		}
		n.mark()
	case m.about == theSet:
		n.says(m)
	case m.about == moves && n.lie == nil:
		m.set = n.step(m.step)
	case m.about == moves:
		m.set = n.keeps()
	case m.about == hello && inc == 0: // it has no marker
		n.model.Mark(n.millis(w.now), n.incarnation())
	}
	inc, _ = n.model.Incarnation()
	return protocol.Answer{Incarnation: inc, Clock: n.micros(w.now)}
}

func (l *link) askTime() {
	if x := l.proc.w.tape; x != nil && x.plan {
		x.note("ask %s>%d", l.proc.label, l.idx+1)
	}
	l.ask(theTime, 0)
}

func (l *link) ask(what about, inc protocol.Incarnation) {
	r := protocol.Request{Node: l.no, Ticket: protocol.Ticket(inc), Sent: l.proc.local(l.proc.w.now)}
	l.transfer(&message{about: what, link: l, req: r})
}

func (l *link) reading(m *message) nodeset.Reading {
	return nodeset.Reading{Sent: m.req.Sent, Received: l.proc.local(l.proc.w.now), Micros: m.ans.Clock}
}

// listen notes what the process knows of the node's clock before it hears of
// it.
func (l *link) listen() {
	p := l.proc
	at, width := p.client.Bounds(p.now(), l.no)
	l.met, l.bounded, l.width = false, at > 0, width
}

// noteReading notes what the process has made of a reading, and by how much the
// node's clock had jumped by then.
func (l *link) noteReading(r nodeset.Reading, leapt time.Duration, why protocol.Why) {
	if why != protocol.Counts && why != protocol.Parted {
		return // the reading was not looked at
	}
	p := l.proc
	if why == protocol.Counts && leapt != l.leapt {
		l.unnoticed((leapt - l.leapt).Abs(), l.bounded && !l.met, l.width, r)
	}
	if !r.Push {
		l.leapt = leapt
	}
	// A node that has been met only since the sleep does not show that there
	// was one.
	if p.waking && l.known < p.woke && !r.Push && r.Sent >= p.woke {
		p.waking, p.excused = false, p.w.now.add(5*p.w.nodeTimeout)
	}
}

// unnoticed: the node's clock has jumped, and the process has not noticed. If
// that is because it has hardly heard of the node before, more than rule 5's
// margin may be missing, and there is no promise any more.
func (l *link) unnoticed(by time.Duration, known bool, width time.Duration, r nodeset.Reading) {
	w := l.proc.w
	switch {
	case by <= w.borne() || !l.node.unsettled():
	case !known, width > w.borne() && by <= width+2*time.Millisecond+r.Received.Sub(r.Sent):
		w.log("process %s cannot see that the clock of node %d has jumped", l.proc.name, l.node.idx)
		w.excused = true
		w.stats.Excused = 1
	}
}

// says is what a node says when it is asked so.
func (n *node) says(m *message) {
	m.set = n.keeps()
	if m.next.Of = m.of; n.lie == nil {
		has := n.model.Name(nodeset.SuccessorName(m.of)).Recorded()
		m.next.Version = has.Version
		m.next.Config, _ = nodeset.ParseConfiguration(string(has.Value))
	}
}

// keeps is what the node says of its set. A client reads it from a text.
func (n *node) keeps() nodeset.NodeSet {
	text := n.model.SetText()
	if n.lie != nil {
		text = n.lie()
	}
	has, ok := nodeset.ParseNodeSet(text)
	if !ok {
		n.w.fail("set", "node %s keeps %q", n.address(), text)
	}
	return has
}

// step carries out a step of the set's register.
func (n *node) step(s nodeset.RecordStep) nodeset.NodeSet {
	w := n.w
	n.lives++
	n.model.Step(n.millis(w.now), s, n.incarnation())
	if inc, _ := n.model.Incarnation(); inc == n.incarnation() {
		n.unmarked, n.jumped, n.replica, n.back = false, false, false, false
	} else {
		n.lives--
	}
	has := n.keeps()
	if c := has.Recorded(); c != nil && s.Kind == nodeset.SetCommit && c.Stamp == s.Config.Stamp {
		w.decides(c)
	}
	if s.Kind == nodeset.SetAccept && w.allAccepted(s) {
		w.decides(s.Config)
	}
	w.log("node %s: %v %s: %v", n.address(), s.Kind, s.Ballot, has.String())
	if w.stepped != nil {
		w.stepped()
	}
	return has
}

// forges has the node show a later configuration, and serve every request: of
// it alone if alone, else of the present members with the others elsewhere.
func (n *node) forges(alone bool) {
	n.w.log("node %s lies", n.address())
	own := n.keeps()
	n.lie = func() string {
		c := *n.w.latest()
		c.Stamp, c.Stage = nodeset.StampOf(99, nodeset.Ballot(fmt.Sprintf("%019d", 99))), nodeset.Stable
		if c.Members = slices.Clone(c.Members); alone {
			c.Members = []nodeset.Member{{Number: 0, Identity: own.Identity, Addr: n.address()}}
		}
		for i := range c.Members {
			m := &c.Members[i]
			if m.Role = nodeset.Stays; m.Identity != own.Identity {
				m.Addr += "x"
			}
		}
		return (&nodeset.NodeSet{Phase: nodeset.SetRecorded, Identity: own.Identity, Config: &c}).String()
	}
}
