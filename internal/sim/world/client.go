package world

import (
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// Each process decides with the code that runs in production (process.Client).
// This file gives it the events and carries out what it says, as core/client.go
// does.

// begin makes the Client of a new process, which knows nothing.
func (p *Proc) begin() {
	w := p.World
	nodes := len(w.Nodes)
	if p.Follower.Members != nil {
		nodes = 0
	}
	p.Client = process.NewClient(process.ClientConfig{
		Nodes: nodes, TTL: p.TTL, NodeTimeout: p.World.NodeTimeout, Guard: p.Follower.settings().Guard,
		Skewed: p.skewed, Seed: uint64(p.Epoch)<<32 | uint64(p.Index),
	})
	p.places, p.crowd = w.Places, nil
	p.names = nil
	for i := range max(1, w.Locks) {
		p.names = append(p.names, &process.Name{Name: recordName + LockNames[i], Counting: w.Counting})
	}
	p.tasks.end()
	p.clientTimer, p.Mender.reading, p.Mender.Mended, p.Mender.repaired = course.Never,
		make([]int, len(w.Nodes)), map[*Node]bool{}, map[int]string{}
	for _, l := range p.Links {
		l.leapt, l.votes = l.Node.Clock.Wrong, 0
	}
}

// CarryOut does what the Client says.
func (p *Proc) CarryOut(do []process.Action) {
	for _, l := range p.Links {
		if !l.member() {
			continue
		}
		if inc := p.Client.Voting(l.No); inc != 0 && inc != l.votes { // its clock begins as it is
			l.votes, l.leapt, l.known, l.met = inc, l.Node.Clock.Wrong, p.Now(), true
		}
	}
	for i := range do {
		p.act(&do[i])
	}
}

func (p *Proc) act(a *process.Action) {
	w, l := p.World, p.Link(a.Node)
	if w.Trace != nil && a.Kind != process.ActWake && a.Kind != process.ActRepair {
		w.Log("process %s: action %d, node %d, nodes %b, by %v", p.Name, a.Kind, a.Node, a.Nodes, a.By)
	}
	switch a.Kind {
	case process.ActWake:
		p.wakeClient(a.At)
	case process.ActAsk:
		l.Tell()
	case process.ActGone:
		if w.Eager {
			w.send(Event{At: w.Now + 2, Kind: EvDown, Proc: p, Gen: p.Epoch,
				M: &Message{Link: l, Req: protocol.Request{Node: l.No}}})
		}
	case process.ActShortenLeases:
		p.early(a.Nodes, a.By)
	case process.ActTime:
		for _, l := range p.Links {
			if l.member() && a.Nodes&(1<<l.No) != 0 {
				l.AskTime()
			}
		}
	case process.ActMark:
		r := protocol.Request{Node: l.No, Ticket: protocol.Ticket(a.Incarnation), Sent: p.Now()}
		l.transfer(&Message{about: thatMark, Link: l, Req: r, try: a.Try})
	case process.ActReconnect:
		l.Snap()
	case process.ActRepair:
		p.Mender.repairs(a.Task)
	}
}

// early: leases end earlier than the process takes them to.
func (p *Proc) early(nodes uint32, by time.Duration) {
	for _, t := range p.Parts {
		if a := t.Att; a != nil {
			a.event(func() { a.Claim.ShortenLeases(p.Now(), nodes, by) })
		}
	}
	p.RegisterOps.each(func(i *RegisterOp) { i.Op.AgeAnswers(p.Now(), by) })
}

// wakeClient has the Client get its Tick. A timer that is under way and too
// early has the Client ask again.
func (p *Proc) wakeClient(t protocol.Time) {
	w := p.World
	at := p.Clock.When(t)
	if at == course.Never || at >= p.clientTimer || w.over() {
		return
	}
	p.clientTimer = max(at, w.Now+1)
	set := p.clientTimer
	w.Queue.Push(set, Event{At: set, Kind: evProc, Proc: p, Gen: p.Epoch, fn: func() {
		if p.clientTimer == set {
			p.clientTimer = course.Never
			p.CarryOut(p.Client.Tick(p.Now()))
		}
	}})
}

// StartClockChecks has the process begin to look at the nodes' clocks.
func (p *Proc) StartClockChecks() { p.CarryOut(p.Client.Tick(p.Now())) }

// reach says that a connection to a member begins.
func (l *Link) reach() {
	if l.member() {
		l.Proc.CarryOut(l.Proc.Client.Connect(l.Proc.Now(), l.No, 2*l.Proc.World.Delay))
	}
}

// judge has the Client judge the answer that a message carries.
func (l *Link) judge(m *Message) protocol.Verdict {
	p := l.Proc
	l.listen()
	v, do := p.Client.Reply(p.Now(), m.shared(), &m.Req, &m.ans)
	p.CarryOut(do)
	if m.Req.Op != protocol.OpLeave {
		l.noteReading(l.reading(m), m.leapt, v.Why)
	}
	return v
}

// judgePush has the Client judge a push.
func (l *Link) judgePush(m *protocol.Push, leapt time.Duration) (counts bool) {
	p := l.Proc
	l.listen()
	counts, do := p.Client.Push(p.Now(), l.No, m)
	p.CarryOut(do)
	if counts {
		l.noteReading(nodeset.Reading{Received: p.Now(), Micros: m.Clock, Push: true}, leapt, protocol.Counts)
	}
	return counts
}

// judgeTime gives the Client the time that a node has told.
func (l *Link) judgeTime(m *Message) {
	p := l.Proc
	l.listen()
	why, do := p.Client.Time(l.No, l.reading(m))
	p.CarryOut(do)
	l.noteReading(l.reading(m), m.leapt, why)
}

// attended takes the answer to ask.
func (l *Link) attended(m *Message) {
	p, now := l.Proc, l.Proc.Now()
	if m.ans.Status == protocol.OtherSet {
		if m.about == theTime { // which any server tells
			l.judgeTime(m)
		}
		l.refused()
		return
	}
	switch m.about {
	case repairs:
		if m.question.err == errOtherSet {
			l.refused()
		}
		m.question.told(m.question.err)
	case Hello:
		p.CarryOut(p.Client.Show(now, l.No, m.ans.Incarnation))
		l.judgeTime(m)
		p.CarryOut(p.Client.Up(now, l.No))
	case theTime:
		l.judgeTime(m)
	case thatMark:
		p.CarryOut(p.Client.Marked(now, l.No, m.try, m.ans.Incarnation, true))
	case theSet:
		p.Follower.Members.HandleReport(l.No, m.try, m.set, m.next)
		p.Follower.Regroup()
	case moves:
		l.stepped(m)
	}
}

func (l *Link) AskTime() {
	if x := l.Proc.World.Tape; x != nil && x.Plan {
		x.Note("ask %s>%d", l.Proc.Label, l.Index+1)
	}
	l.Ask(theTime, 0)
}

func (l *Link) Ask(what about, inc protocol.Incarnation) {
	r := protocol.Request{Node: l.No, Ticket: protocol.Ticket(inc), Sent: l.Proc.Now()}
	l.transfer(&Message{about: what, Link: l, Req: r})
}

func (l *Link) reading(m *Message) nodeset.Reading {
	return nodeset.Reading{Sent: m.Req.Sent, Received: l.Proc.Now(), Micros: m.ans.Clock}
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
	case by <= w.Borne() || !l.Node.Clock.Unsettled():
	case !known, width > w.Borne() && by <= width+2*time.Millisecond+r.Received.Sub(r.Sent):
		w.Log("process %s cannot see that the clock of node %d has jumped", l.Proc.Name, l.Node.Index)
		w.Excused = true
		w.Stats.Excused = 1
	}
}
