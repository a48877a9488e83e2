package sim

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Each process judges the nodes' clocks by what they tell it, with the code that
// runs in production (protocol.Clocks). This file gives it the readings, and
// does what it says, as core/clock.go does.

// about is what a message is about.
type about uint8

const (
	claims     about = iota // or records
	hello                   // how a connection begins: the node's incarnation, and its time
	theTime                 // the node's
	thatMark                // the node shall begin a new incarnation if it still has the one of req.Ticket; 0: if its marker is of another run
	theGuard                // so it shall if its guard time began by a time that has not come yet
	repairs                 // a step of a repair
	theLongest              // the longest guard time that clients have shown to the node
)

func (a about) String() string {
	return [...]string{"claims", "hello", "time", "mark", "guard", "repairing", "longest"}[a]
}

// attend does what is asked of a node outside any claim.
func (n *node) attend(m *message) protocol.Answer {
	w := n.w
	inc, _ := n.model.Incarnation()
	switch {
	case m.about == repairs:
		m.task.res = n.repairStep(m.task, m.link.proc)
	case m.about == thatMark && (protocol.Incarnation(m.req.Ticket) == inc || m.req.Ticket == 0 && n.replica):
		w.log("process %s has node %d marked", m.link.proc.name, n.idx)
		if !n.jumped && !n.replica && !n.original && !m.link.proc.left(n) {
			w.fail("silenced", "process %s has node %d marked, whose clock has not jumped", m.link.proc.name, n.idx)
		}
		n.mark()
	case m.about == theGuard:
		n.inspect(m.link.proc)
	case m.about == hello && inc == 0: // it has no marker
		n.model.Mark(n.millis(w.now), n.incarnation())
	}
	inc, _ = n.model.Incarnation()
	return protocol.Answer{Incarnation: inc, Clock: n.millis(w.now), Wait: n.model.Guard()}
}

// left reports whether an address of the process has left the node's server a guard time ago, without INFO.
// Another address that shows the incarnation since may then reach that server, or a copy whose own data is lost
// ("Restarted nodes" in docs/protocol.md). No evidence tells, so the process may have the node marked.
func (p *proc) left(n *node) bool {
	return p.w.nameless && slices.ContainsFunc(p.links, func(l *link) bool {
		return l.was == n && l.node != n && p.local(p.w.now) > l.away.Add(p.guard())
	})
}

// judges has the process begin to look at the nodes' clocks.
func (p *proc) judges() {
	bounds := make([]*protocol.ClockBounds, len(p.links))
	for i := range bounds {
		bounds[i] = new(protocol.ClockBounds)
	}
	p.bounds = bounds
	p.clocks = protocol.NewClocks(bounds, p.nodeTimeout(), p.guard())
	p.clocks.Rules = p.w.rules
	p.clockTimer = never
	p.fanout = protocol.NewFanout(len(p.links), p.w.rules)
	p.lives = protocol.NewIncarnations(len(p.links), p.w.guard, p.w.rules)
	for _, l := range p.links {
		l.leapt = l.node.wrong
	}
}

func (l *link) bounds() *protocol.ClockBounds { return l.proc.bounds[l.node.idx] }

// looks has the process ask each node for its time if no reply has shown it for a while.
func (p *proc) looks() {
	w := p.w
	every := max(w.ttl/4, 250*time.Millisecond)
	p.later(every, func() {
		for _, l := range p.links {
			if l.up && p.local(w.now).Sub(l.bounds().At()) > every/2 {
				l.askTime()
			}
		}
		if !w.draining || !w.idle() || w.now < w.lastRead {
			p.looks()
		}
	})
}

func (l *link) askTime() {
	if x := l.proc.w.tape; x != nil && x.plan {
		x.note("ask %s>%d", l.proc.label, l.idx+1)
	}
	l.ask(theTime, 0)
}

func (l *link) ask(what about, inc protocol.Incarnation) {
	r := protocol.Request{Node: l.node.idx, Ticket: protocol.Ticket(inc), Sent: l.proc.local(l.proc.w.now)}
	l.transfer(&message{about: what, link: l, req: r})
}

// attended takes the answer to ask.
func (l *link) attended(m *message) {
	switch m.about {
	case repairs:
		l.proc.stepDone(m.task, m.task.res)
		return
	case hello:
		p := l.proc
		p.fanout.Begin(p.local(p.w.now), l.idx, p.local(p.w.now).Sub(m.req.Sent))
		l.lives(func(s *protocol.Incarnations, now protocol.Time) {
			s.Show(now, l.idx, m.ans.Incarnation)
			s.Up(now, l.idx)
		})
		p.meets(l.node)
		fallthrough
	case theTime:
		l.timely(l.reading(m), m.leapt)
	case thatMark:
		l.lives(func(s *protocol.Incarnations, now protocol.Time) {
			s.Marked(now, l.idx, m.try, m.ans.Incarnation, true)
		})
	case theLongest:
		l.proc.clocks.Guard(l.proc.local(l.proc.w.now), l.idx, m.ans.Wait)
		l.proc.settle()
	case theGuard:
		l.lives(func(s *protocol.Incarnations, now protocol.Time) { s.Counted(now, l.idx, m.ans.Incarnation) })
	}
}

func (l *link) reading(m *message) protocol.Reading {
	return protocol.Reading{Sent: m.req.Sent, Heard: l.proc.local(l.proc.w.now), Millis: m.ans.Clock}
}

// timely gives the judge a reading, and reports whether what came with it
// counts, and how late a vote does.
func (l *link) timely(r protocol.Reading, leapt time.Duration) (counts bool, late time.Duration) {
	p, b := l.proc, l.bounds()
	known, width := b.At() > 0, b.Width(r.Heard)
	counts, late = p.clocks.Read(l.node.idx, r)
	if counts && late == 0 && leapt != l.leapt {
		l.unnoticed((leapt - l.leapt).Abs(), known, width, r)
	}
	if !r.Push {
		l.leapt = leapt
	}
	// A node that has been met only since the sleep does not show that there was one.
	if p.waking && l.known < p.woke && !r.Push && r.Sent >= p.woke {
		p.waking, p.excused = false, p.w.now.add(5*p.w.nodeTimeout)
	}
	p.settle()
	return counts, late
}

// unnoticed: the node's clock has jumped, and the process has not noticed. If
// that is because it has hardly heard of the node before, more than rule 5's
// margin may be missing, and there is no promise any more.
func (l *link) unnoticed(by time.Duration, known bool, width time.Duration, r protocol.Reading) {
	w := l.proc.w
	switch {
	case by <= w.borne() || !l.node.unsettled():
	case !known, width > w.borne() && by <= width+2*time.Millisecond+r.Heard.Sub(r.Sent):
		w.log("process %s cannot see that the clock of node %d has jumped", l.proc.name, l.node.idx)
		w.excused = true
		w.stats.Excused = 1
	}
}

// borne is by how much a clock may jump within a lease: rule 5's margin, less
// the 1% that clocks may differ by in speed, and the resolution of a node's.
func (w *world) borne() time.Duration { return w.ttl / 50 }

// settle does what the judge says.
func (p *proc) settle() {
	w := p.w
	for len(p.clocks.Out) > 0 {
		todo := p.clocks.Out
		p.clocks.Out = nil
		for _, e := range todo {
			p.obey(e)
		}
	}
	at := p.when(p.clocks.Wake())
	if at == never || at >= p.clockTimer {
		return
	}
	p.clockTimer = max(at, w.now+1)
	set := p.clockTimer
	w.queue.push(event{at: set, kind: evProc, proc: p, gen: p.epoch, fn: func() {
		if p.clockTimer == set {
			p.clockTimer = never
			p.clocks.Tick(p.local(w.now))
			p.settle()
		}
	}})
}

func (p *proc) obey(e protocol.ClockEvent) {
	w, l := p.w, p.links[e.Node]
	if w.trace != nil {
		w.log("process %s: clock event %d, node %d, nodes %b, by %v", p.name, e.Kind, e.Node, e.Nodes, e.By)
	}
	switch e.Kind {
	case protocol.ClockAsk:
		for i, l := range p.links {
			if e.Nodes&(1<<i) != 0 {
				l.askTime()
			}
		}
	case protocol.ClockGuard:
		l.ask(theLongest, 0)
	case protocol.ClockMark:
		l.lives(func(s *protocol.Incarnations, _ protocol.Time) { s.Distrust(l.idx) })
	case protocol.ClockDoubted:
		if e.By < 0 {
			l.ask(theGuard, 0)
		}
	case protocol.ClockCleared:
		l.tell()
	case protocol.ClockEarly:
		for _, t := range p.parts {
			if a := t.att; a != nil {
				a.before()
				a.Early(p.local(w.now), e.Nodes, e.By)
				a.after()
			}
		}
		for _, i := range append([]*inquiry(nil), p.inquiries...) {
			i.Early(p.local(w.now), e.By)
			i.after()
		}
	}
}

// sleep stops the process and its clock, as a machine does that sleeps. Its
// connections may be gone when it wakes. Until it has heard of a node then, it
// cannot know. Whatever has the process go on before ends the sleep.
func (p *proc) sleep(d time.Duration, breaks bool) {
	if !p.alive || p.paused {
		return
	}
	w := p.w
	w.log("process %s falls asleep, and its clock stands still", p.name)
	w.stats.Sleeps++
	w.tape.note("sleep %s", p.label)
	p.asleep, p.slept = true, w.now
	p.doze()
	if w.wire != nil && w.wire.manual {
		return
	}
	since := w.now
	w.at(d, func() {
		if !p.asleep || p.slept != since {
			return
		}
		p.wake()
		for _, l := range p.links {
			if breaks {
				l.snap()
			}
		}
		p.resume()
	})
}

// doze is pause without a line on the tape.
func (p *proc) doze() {
	defer p.w.tape.within()()
	p.pause()
}

// wake has the clock go on with what it showed when it stopped. Invariant: the
// clock of a process that is not asleep never goes back.
func (p *proc) wake() {
	p.w.tape.note("wake %s", p.label)
	p.clock.offset -= int64(float64(p.w.now-p.slept) * p.clock.rate)
	p.asleep, p.waking, p.woke = false, true, p.local(p.w.now)
}

// mayBeWrong: the process has slept, and cannot know that its leases have ended.
func (p *proc) mayBeWrong() bool { return p.asleep || p.waking || p.w.now < p.excused }
