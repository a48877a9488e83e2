package sim

import "github.com/quorate/quorate/internal/protocol"

// Each process decides which replies of a node count with the code that runs in
// production (protocol.Incarnations). This file does what core/incarnation.go does.

// lives gives protocol.Incarnations an event of the link's address, and does what it
// says then.
func (l *link) lives(event func(s *protocol.Incarnations, now protocol.Time)) {
	p := l.proc
	event(p.lives, p.local(p.w.now))
	todo := p.lives.Out
	p.lives.Out = nil
	for _, a := range todo {
		l.heed(a)
	}
}

func (l *link) heed(a protocol.NodeAction) {
	p, w := l.proc, l.proc.w
	if w.trace != nil {
		w.log("process %s: node action %d, address %d, other %d", p.name, a.Kind, a.Node, a.Other)
	}
	switch a.Kind {
	case protocol.NodeMet:
		l.leapt, l.known = l.node.wrong, p.local(w.now)
		p.clocks.Met(l.idx)
		p.settle()
	case protocol.NodeMark:
		r := protocol.Request{Node: l.idx, Ticket: protocol.Ticket(a.Inc), Sent: p.local(w.now)}
		l.transfer(&message{about: thatMark, link: l, req: r, try: a.Try})
	case protocol.NodeCompare:
		other := p.links[a.Other]
		p.later(4*w.delay, func() {
			l.lives(func(s *protocol.Incarnations, _ protocol.Time) {
				s.Compared(l.idx, a.Try, a.Other, l.node == other.node, l.up && other.up)
			})
		})
	case protocol.NodeReconnect:
		l.snap()
	case protocol.NodeAsk:
		l.tell()
	case protocol.NodeRepair:
		p.lookAt(l)
	}
}

// reach says that the address reaches its server. It returns the address that votes for
// that instead, or -1.
func (l *link) reach() (other int) {
	run := ""
	if !l.proc.w.nameless {
		run = l.node.run()
	}
	l.lives(func(s *protocol.Incarnations, now protocol.Time) { other = s.Connect(now, l.idx, run) })
	return other
}

// check reports whether a reply of that incarnation counts.
func (l *link) check(inc protocol.Incarnation) (counts bool) {
	l.lives(func(s *protocol.Incarnations, now protocol.Time) { counts = s.Check(now, l.idx, inc) })
	return counts
}

func (l *link) checkPush(inc protocol.Incarnation) (counts bool) {
	l.lives(func(s *protocol.Incarnations, _ protocol.Time) { counts = s.CheckPush(l.idx, inc) })
	return counts
}
