package sim

import (
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a process is, and what it makes of what it hears. Its
// Client is driven by client.go.

// epoch is what the nodes' clocks show at true time 0, in microseconds.
const epoch = protocol.Ticket(1_700_000_000_000_000)

// proc is a client process.
type proc struct {
	machine
	cables
	follower
	mender
	registerOps
	w           *world
	name        string // as the nodes know it
	label       string // in traces
	client      *process.Client
	names       []*process.Name // what its claims of a name share
	intake      process.Intake[*participant]
	parts       []*participant
	index       int
	clientTimer moment // when the Client gets its Tick
}

func newProc(w *world, i int) *proc {
	p := &proc{w: w, name: strconv.Itoa(i), label: string(rune('a' + i)), index: i}
	p.machine = machine{p: p, clock: newClock(w.rng, &w.setting), alive: true}
	p.follower.p, p.mender.p, p.registerOps.p = p, p, p
	p.adjust()
	for i, n := range w.nodes {
		p.links = append(p.links, &link{proc: p, node: n, idx: i, no: i, up: true, open: true, last: [2]moment{w.now, w.now}})
	}
	p.nowhere = &link{proc: p, node: w.nodes[0], no: -1, at: "nowhere"}
	p.begin()
	for _, l := range p.links {
		l.reach()
	}
	for j := range w.parts {
		p.parts = append(p.parts, newParticipant(p, j))
	}
	return p
}

// lease is the ttl of a claim that begins now.
func (p *proc) lease() time.Duration {
	if most := p.client.Group().LongestTTL; most > 0 {
		return min(p.w.ttl, most)
	}
	return p.w.ttl
}

// propose is an attempt that comes to nothing before anything of it is sent.
func (p *proc) propose() {
	var a process.Attempt
	p.client.Start(p.now(), &a, p.names[0], &process.Begin{
		Terms: protocol.Terms{ID: p.w.newID(), Weight: 1, Capacity: p.w.capacity, TTL: p.w.ttl}, NodeTimeout: p.w.nodeTimeout, Rules: p.w.rules,
	})
}

// take handles an event of the process, now or when it goes on.
func (p *proc) take(e event) {
	if e.gen != p.epoch {
		return
	}
	if p.paused {
		p.inbox = append(p.inbox, e)
		return
	}
	switch e.kind {
	case evAnswer:
		p.answer(e.m)
	case evFail:
		if e.m.inq != nil {
			if !e.m.silent {
				e.m.inq.Fail(p.local(p.w.now), e.m.req, false)
				e.m.inq.after()
			}
			return
		}
		if e.m.silent {
			p.later(p.w.nodeTimeout, func() { p.failed(e.m, false) })
			return
		}
		p.failed(e.m, false)
	case evPush, evProc:
		e.fn()
	case evTimer:
		e.att.fire(e.at)
	case evUp:
		p.up(e.m.link, e.m.req.Node)
	case evDown:
		p.down(e.m.link, e.m.req.Node)
	}
}

func (p *proc) answer(m *message) {
	l := m.link
	if m.gen != l.gen {
		return
	}
	for i, u := range l.unanswered { // the first, unless leaves overtake
		if u == m {
			l.unanswered = append(l.unanswered[:i:i], l.unanswered[i+1:]...)
			if m.about == claims {
				l.pending--
			}
			break
		}
	}
	defer l.pump()
	if m.about != claims {
		l.attended(m)
		return
	}
	if m.ans.Status == protocol.OtherSet {
		l.refused()
		if m.inq == nil {
			p.failed(m, false)
		} else if !m.inq.over {
			m.inq.Fail(p.now(), m.req, false)
			m.inq.after()
		}
		return
	}
	var v protocol.Verdict
	if !m.refused {
		v = l.judge(m)
	}
	if m.inq != nil {
		p.registerReply(m, v)
		return
	}
	if m.refused {
		p.refused(m)
		return
	}
	if p.w.trace != nil && !m.att.Phase().Final() {
		p.w.log("%v: node %d answers %v: %s", m.att, l.node.idx, m.req.Op, answerName(m.req, m.ans))
	}
	var do []process.Action
	m.att.event(func() { do = p.client.Answer(p.now(), m.att.Attempt, m.att.part.shared(), &m.req, &m.ans, v) })
	p.carryOut(do)
}

// refused takes a request that the node has refused.
func (p *proc) refused(m *message) {
	if !m.forNow {
		p.failed(m, true)
		return
	}
	var pause time.Duration
	m.att.event(func() { pause = m.att.Refused(p.now(), &m.req) })
	if pause > 0 {
		again := *m
		again.refused, again.forNow = false, false
		p.later(pause, func() { again.link.transfer(&again) })
	}
}

// failed takes a request that will not be answered.
func (p *proc) failed(m *message, forGood bool) {
	m.att.event(func() { m.att.Attempt.Fail(p.now(), &m.req, forGood) })
}

// registerReply takes the answer to a register operation.
func (p *proc) registerReply(m *message, v protocol.Verdict) {
	switch {
	case m.inq.over:
		return
	case m.refused:
		m.inq.Fail(p.now(), m.req, !m.forNow)
	default:
		m.inq.Reply(p.now(), m.req, m.ans, v)
	}
	m.inq.after()
}

func (p *proc) push(node int, m protocol.Push) {
	for _, part := range p.parts {
		if a := part.att; a != nil && a.ID == m.ID {
			if p.w.trace != nil {
				p.w.log("%v: node %d pushes %s vote=%v", a, node, ticketName(m.Ticket), m.Vote)
			}
			a.event(func() { a.Push(p.local(p.w.now), node, m) })
		}
	}
}

func (p *proc) up(l *link, no int) {
	if no != l.no || no < 0 || no >= nodeset.Seed {
		return
	}
	for _, part := range p.parts {
		if a := part.att; a != nil && l.up {
			a.event(func() { a.Up(p.local(p.w.now), no) })
		}
	}
	p.eachOp(func(i *registerOp) { i.Up(p.local(p.w.now), no) })
}

func (p *proc) down(l *link, no int) {
	for _, part := range p.parts {
		if a := part.att; a != nil && !l.up {
			a.event(func() { a.Down(p.local(p.w.now), no) })
		}
	}
}

// again has a request of a reach n a second time, from a connection that is no
// more.
func (p *proc) again(a *attempt, n *node, op protocol.Op) {
	if a != nil {
		m := &message{att: a, link: p.to(n), terms: a.Terms, req: protocol.Request{Node: n.idx, Op: op, Ticket: a.first}}
		p.w.send(event{at: p.w.now.add(p.w.delay), kind: evLate, m: m})
	}
}
