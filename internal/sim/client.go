package sim

import (
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// Each process decides with the code that runs in production (process.Client).
// This file gives it the events and carries out what it says, as core/client.go
// does.

// begin makes the Client of a new process, which knows nothing.
func (p *proc) begin() {
	w := p.w
	nodes := len(w.nodes)
	if p.members != nil {
		nodes = 0
	}
	p.client = process.NewClient(process.ClientConfig{
		Nodes: nodes, TTL: p.w.ttl, NodeTimeout: p.w.nodeTimeout, Guard: p.settings().Guard,
		Skewed: p.skewed, Seed: uint64(p.epoch)<<32 | uint64(p.index), Rules: w.rules,
	})
	p.intake = process.Intake[*participant]{Places: w.places}
	p.names = nil
	for i := range max(1, w.locks) {
		p.names = append(p.names, &process.Name{Name: recordName + lockNames[i], Counting: w.counting})
	}
	p.clientTimer, p.reading, p.mended, p.repaired = never, make([]int, len(w.nodes)), map[*node]bool{}, map[int]string{}
	for _, l := range p.links {
		l.leapt, l.votes = l.node.wrong, 0
	}
}

// carryOut does what the Client says.
func (p *proc) carryOut(do []process.Action) {
	for _, l := range p.links {
		if !l.member() {
			continue
		}
		if inc := p.client.Voting(l.no); inc != 0 && inc != l.votes { // its clock begins as it is
			l.votes, l.leapt, l.known, l.met = inc, l.node.wrong, p.now(), true
		}
	}
	for i := range do {
		p.act(&do[i])
	}
}

func (p *proc) act(a *process.Action) {
	w, l := p.w, p.link(a.Node)
	if w.trace != nil && a.Kind != process.ActWake && a.Kind != process.ActStep {
		w.log("process %s: action %d, node %d, nodes %b, by %v", p.name, a.Kind, a.Node, a.Nodes, a.By)
	}
	switch a.Kind {
	case process.ActWake:
		p.wakeClient(a.At)
	case process.ActAsk:
		l.tell()
	case process.ActGone:
		if w.eager {
			w.send(event{at: w.now + 2, kind: evDown, proc: p, gen: p.epoch, m: &message{link: l, req: protocol.Request{Node: l.no}}})
		}
	case process.ActEarly:
		p.early(a.Nodes, a.By)
	case process.ActTime:
		for _, l := range p.links {
			if l.member() && a.Nodes&(1<<l.no) != 0 {
				l.askTime()
			}
		}
	case process.ActMark:
		r := protocol.Request{Node: l.no, Ticket: protocol.Ticket(a.Incarnation), Sent: p.now()}
		l.transfer(&message{about: thatMark, link: l, req: r, try: a.Try})
	case process.ActReconnect:
		l.snap()
	case process.ActStep:
		switch step := *a.Step; {
		case p.link(step.Target) == p.nowhere:
			p.later(p.w.nodeTimeout, func() { p.carryOut(p.client.StepDone(p.now(), &step, repair.RepairResult{Err: errSilent})) })
		case a.Step.Kind == repair.RepairLook && !p.mends(p.link(a.Step.Target).node):
			// Nothing is missing there, for all that this world, or this trace,
			// knows.
			p.carryOut(p.client.StepDone(p.now(), a.Step, repair.RepairResult{CaughtUp: true}))
		case a.Step.Kind == repair.RepairSpread && w.wire != nil && !w.wire.repairs && len(p.mended) == 0:
			p.carryOut(p.client.StepDone(p.now(), a.Step, repair.RepairResult{}))
		default:
			p.takeStep(*a.Step)
		}
	}
}

// early: leases end earlier than the process takes them to.
func (p *proc) early(nodes uint32, by time.Duration) {
	for _, t := range p.parts {
		if a := t.att; a != nil {
			a.event(func() { a.Early(p.now(), nodes, by) })
		}
	}
	p.eachOp(func(i *registerOp) { i.Early(p.now(), by) })
}

// wakeClient has the Client get its Tick. A timer that is under way and too
// early has the Client ask again.
func (p *proc) wakeClient(t protocol.Time) {
	w := p.w
	at := p.when(t)
	if at == never || at >= p.clientTimer || w.over() {
		return
	}
	p.clientTimer = max(at, w.now+1)
	set := p.clientTimer
	w.queue.push(event{at: set, kind: evProc, proc: p, gen: p.epoch, fn: func() {
		if p.clientTimer == set {
			p.clientTimer = never
			p.carryOut(p.client.Tick(p.now()))
		}
	}})
}

// begins has the process begin to look at the nodes' clocks.
func (p *proc) begins() { p.carryOut(p.client.Tick(p.now())) }

// reach says that a connection to a member begins.
func (l *link) reach() {
	if l.member() {
		l.proc.carryOut(l.proc.client.Connect(l.proc.now(), l.no, 2*l.proc.w.delay))
	}
}

// judge has the Client judge the answer that a message carries.
func (l *link) judge(m *message) protocol.Verdict {
	p := l.proc
	l.listen()
	v, do := p.client.Reply(p.now(), m.shared(), &m.req, &m.ans)
	p.carryOut(do)
	if m.req.Op != protocol.OpLeave {
		l.noteReading(l.reading(m), m.leapt, v.Why)
	}
	return v
}

// judgePush has the Client judge a push.
func (l *link) judgePush(m *protocol.Push, leapt time.Duration) (counts bool) {
	p := l.proc
	l.listen()
	counts, do := p.client.Push(p.now(), l.no, m)
	p.carryOut(do)
	if counts {
		l.noteReading(nodeset.Reading{Received: p.now(), Micros: m.Clock, Push: true}, leapt, protocol.Counts)
	}
	return counts
}

// judgeTime gives the Client the time that a node has told.
func (l *link) judgeTime(m *message) {
	p := l.proc
	l.listen()
	why, do := p.client.Time(l.no, l.reading(m))
	p.carryOut(do)
	l.noteReading(l.reading(m), m.leapt, why)
}

// attended takes the answer to ask.
func (l *link) attended(m *message) {
	p, now := l.proc, l.proc.now()
	if m.ans.Status == protocol.OtherSet {
		if m.about == theTime { // which any server tells
			l.judgeTime(m)
		}
		l.refused()
		return
	}
	switch m.about {
	case repairs:
		if m.task.res.Err == errOtherSet {
			l.refused()
		}
		p.stepDone(m.task, m.task.res)
	case hello:
		p.carryOut(p.client.Show(now, l.no, m.ans.Incarnation))
		l.judgeTime(m)
		p.carryOut(p.client.Up(now, l.no))
	case theTime:
		l.judgeTime(m)
	case thatMark:
		p.carryOut(p.client.Marked(now, l.no, m.try, m.ans.Incarnation, true))
	case theSet:
		p.members.Told(l.no, m.try, m.set, m.next)
		p.regroup()
	case moves:
		l.stepped(m)
	}
}
