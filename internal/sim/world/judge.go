package world

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
	Hello                 // how a connection begins: the node's incarnation, and its time
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
func (n *Node) attend(m *Message) protocol.Answer {
	w := n.World
	inc, _ := n.Model.Incarnation()
	_, marked := n.Model.Incarnation()
	set := n.Model.Set()
	switch asks := m.about == Hello || m.about == thatMark || m.about == theTime; {
	case asks && n.Lie == nil && m.Link.Proc.Members != nil && (m.stamp != set.Stamp() || !marked):
		return protocol.Answer{Status: protocol.OtherSet, Clock: n.Micros(w.Now)}
	case m.about == repairs:
		m.task.res = n.repairStep(m)
	case m.about == thatMark && (protocol.Incarnation(m.Req.Ticket) == inc || m.Req.Ticket == 0 && n.replica):
		w.Log("process %s has node %d marked", m.Link.Proc.Name, n.Index)
		if !n.jumped && !n.replica && !n.back {
			w.Fail("silenced", "process %s has node %d marked, whose clock has not jumped", m.Link.Proc.Name, n.Index)
		}
		n.mark()
	case m.about == theSet:
		n.says(m)
	case m.about == moves && n.Lie == nil:
		m.set = n.Step(m.step)
	case m.about == moves:
		m.set = n.Keeps()
	case m.about == Hello && inc == 0: // it has no marker
		n.Model.Mark(n.Millis(w.Now), n.Incarnation())
	}
	inc, _ = n.Model.Incarnation()
	return protocol.Answer{Incarnation: inc, Clock: n.Micros(w.Now)}
}

func (l *Link) AskTime() {
	if x := l.Proc.World.Tape; x != nil && x.Plan {
		x.Note("ask %s>%d", l.Proc.Label, l.Index+1)
	}
	l.Ask(theTime, 0)
}

func (l *Link) Ask(what about, inc protocol.Incarnation) {
	r := protocol.Request{Node: l.No, Ticket: protocol.Ticket(inc), Sent: l.Proc.Local(l.Proc.World.Now)}
	l.transfer(&Message{about: what, Link: l, Req: r})
}

func (l *Link) reading(m *Message) nodeset.Reading {
	return nodeset.Reading{Sent: m.Req.Sent, Received: l.Proc.Local(l.Proc.World.Now), Micros: m.ans.Clock}
}

// listen notes what the process knows of the node's clock before it hears of
// it.
func (l *Link) listen() {
	p := l.Proc
	at, width := p.Client.Bounds(p.Now(), l.No)
	l.met, l.bounded, l.width = false, at > 0, width
}

// noteReading notes what the process has made of a reading, and by how much the
// node's clock had jumped by then.
func (l *Link) noteReading(r nodeset.Reading, leapt time.Duration, why protocol.Why) {
	if why != protocol.Counts && why != protocol.Parted {
		return // the reading was not looked at
	}
	p := l.Proc
	if why == protocol.Counts && leapt != l.leapt {
		l.unnoticed((leapt - l.leapt).Abs(), l.bounded && !l.met, l.width, r)
	}
	if !r.Push {
		l.leapt = leapt
	}
	// A node that has been met only since the sleep does not show that there
	// was one.
	if p.waking && l.known < p.woke && !r.Push && r.Sent >= p.woke {
		p.waking, p.excused = false, p.World.Now.Add(5*p.World.NodeTimeout)
	}
}

// unnoticed: the node's clock has jumped, and the process has not noticed. If
// that is because it has hardly heard of the node before, more than rule 5's
// margin may be missing, and there is no promise any more.
func (l *Link) unnoticed(by time.Duration, known bool, width time.Duration, r nodeset.Reading) {
	w := l.Proc.World
	switch {
	case by <= w.Borne() || !l.Node.Unsettled():
	case !known, width > w.Borne() && by <= width+2*time.Millisecond+r.Received.Sub(r.Sent):
		w.Log("process %s cannot see that the clock of node %d has jumped", l.Proc.Name, l.Node.Index)
		w.Excused = true
		w.Stats.Excused = 1
	}
}

// says is what a node says when it is asked so.
func (n *Node) says(m *Message) {
	m.set = n.Keeps()
	if m.next.Of = m.of; n.Lie == nil {
		has := n.Model.Name(nodeset.SuccessorName(m.of)).Recorded()
		m.next.Version = has.Version
		m.next.Config, _ = nodeset.ParseConfiguration(string(has.Value))
	}
}

// Keeps is what the node says of its set. A client reads it from a text.
func (n *Node) Keeps() nodeset.NodeSet {
	text := n.Model.SetText()
	if n.Lie != nil {
		text = n.Lie()
	}
	has, ok := nodeset.ParseNodeSet(text)
	if !ok {
		n.World.Fail("set", "node %s keeps %q", n.Address(), text)
	}
	return has
}

// Step carries out a step of the set's register.
func (n *Node) Step(s nodeset.RecordStep) nodeset.NodeSet {
	w := n.World
	n.lives++
	n.Model.Step(n.Millis(w.Now), s, n.Incarnation())
	if inc, _ := n.Model.Incarnation(); inc == n.Incarnation() {
		n.Unmarked, n.jumped, n.replica, n.back = false, false, false, false
	} else {
		n.lives--
	}
	has := n.Keeps()
	if c := has.Recorded(); c != nil && s.Kind == nodeset.SetCommit && c.Stamp == s.Config.Stamp {
		w.decides(c)
	}
	if s.Kind == nodeset.SetAccept && w.allAccepted(s) {
		w.decides(s.Config)
	}
	w.Log("node %s: %v %s: %v", n.Address(), s.Kind, s.Ballot, has.String())
	if w.Stepped != nil {
		w.Stepped()
	}
	return has
}

// Forges has the node show a later configuration, and serve every request: of
// it alone if alone, else of the present members with the others elsewhere.
func (n *Node) Forges(alone bool) {
	n.World.Log("node %s lies", n.Address())
	own := n.Keeps()
	n.Lie = func() string {
		c := *n.World.Latest()
		c.Stamp, c.Stage = nodeset.StampOf(99, nodeset.Ballot(fmt.Sprintf("%019d", 99))), nodeset.Stable
		if c.Members = slices.Clone(c.Members); alone {
			c.Members = []nodeset.Member{{Number: 0, Identity: own.Identity, Addr: n.Address()}}
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
