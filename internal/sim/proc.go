package sim

import (
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// epoch is the wall clock at true time 0, in microseconds.
const epoch = protocol.Ticket(1_700_000_000_000_000)

// proc is a client process.
type proc struct {
	clock
	w         *world
	name      string        // as the nodes know it
	label     string        // in traces
	wall      time.Duration // how far the wall clock is off
	off       time.Duration // by how much it is wrong, beyond the skew
	tickets   protocol.TicketClock
	links     []*link
	lives     *protocol.Incarnations
	fanout    *protocol.Fanout
	parts     []*participant
	inquiries []*inquiry
	shorter   time.Duration // its settings are those of the world divided by this

	index       int
	repair      *protocol.Repair // see repair.go
	repairTimer moment
	reading     []int          // by node: names that it is bringing there
	mended      map[*node]bool // in a trace: that it repairs
	repaired    string         // in a trace: what was last said of that
	decider     *participant   // one of parts, once there is one

	bounds     []*protocol.ClockBounds // of the nodes' clocks
	clocks     *protocol.Clocks
	clockTimer moment
	asleep     bool   // its clock stands still
	slept      moment // since when
	waking     bool   // it did, and no node has answered since
	woke       protocol.Time
	excused    moment // until then it cannot be held to what it does not know yet

	alive, paused bool
	epoch         uint32 // counts its lives
	inbox         []event
	timersFirst   bool // in traces: what resume handles first
}

func newProc(w *world, i int) *proc {
	p := &proc{w: w, name: strconv.Itoa(i), label: string(rune('a' + i)), clock: newClock(w.rng, &w.setting), alive: true, shorter: 1, index: i}
	p.adjust()
	for i, n := range w.nodes {
		p.links = append(p.links, &link{proc: p, node: n, idx: i, up: true, last: [2]moment{w.now, w.now}})
	}
	p.judges()
	p.startRepairs()
	for _, l := range p.links {
		l.reach()
	}
	for j := range w.parts {
		p.parts = append(p.parts, newParticipant(p, j))
	}
	return p
}

// owner finds the process that a node knows by its name.
func (w *world) owner(name string) *proc {
	i, err := strconv.Atoi(name)
	if err != nil {
		panic(err)
	}
	return w.procs[i]
}

// shorten divides its settings by a number.
func (p *proc) shorten(by int) {
	p.shorter = time.Duration(by)
	p.clocks.Wait, p.clocks.Longest = p.nodeTimeout(), p.guard()/2
}

// The settings of one process; they may differ.

func (p *proc) ttl() time.Duration         { return p.w.ttl / p.shorter }
func (p *proc) guard() time.Duration       { return p.w.guard / p.shorter }
func (p *proc) retention() time.Duration   { return p.w.retention / p.shorter }
func (p *proc) nodeTimeout() time.Duration { return p.w.nodeTimeout / p.shorter }

// adjust sets the wall clock again; two processes' never differ by more than the skew.
func (p *proc) adjust() {
	p.wall = p.off
	if s := int64(p.w.skew); s > 0 && p.w.offsets {
		p.wall += time.Duration(p.w.rng.Int64N(s+1) - s/2)
	}
}

// wallClock is what the process's wall clock shows.
func (p *proc) wallClock() protocol.Ticket {
	return protocol.Ticket(int64(epoch) + (time.Duration(p.w.now) + p.wall).Microseconds())
}

// ticket is T0 of a new claim.
func (p *proc) ticket(id protocol.ID) protocol.Ticket {
	return p.tickets.Propose(id, p.wallClock(), p.window(), p.w.rules)
}

// saw is what the process does with a ticket that a node tells of.
func (p *proc) saw(t protocol.Ticket) { p.tickets.Saw(t, p.wallClock(), p.window()) }

// window is how far tickets may be from clocks.
func (p *proc) window() protocol.Window { return protocol.WindowOf(p.guard()) }

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
		e.m.att.outbox.Landed(&e.m.req)
		if e.m.silent {
			return
		}
		e.m.att.before()
		e.m.att.Fail(p.local(p.w.now), e.m.req, false)
		e.m.att.after()
	case evPush, evProc:
		e.fn()
	case evTimer:
		e.att.fire(e.at)
	case evUp:
		p.up(e.m.link)
	case evDown:
		p.down(e.m.link)
	}
}

// later does something to the process; it waits while the process is stopped.
func (p *proc) later(d time.Duration, fn func()) {
	p.w.queue.push(event{at: p.w.now.add(d), kind: evProc, proc: p, gen: p.epoch, fn: fn})
}

func (p *proc) answer(m *message) {
	l := m.link
	if m.gen != l.gen {
		return
	}
	for i, u := range l.unanswered { // the first, unless leaves overtake
		if u == m {
			l.unanswered = append(l.unanswered[:i:i], l.unanswered[i+1:]...)
			l.pending--
			break
		}
	}
	defer l.pump()
	if m.about != claims {
		l.attended(m)
		return
	}
	counts, late := true, time.Duration(0)
	if m.req.Op != protocol.OpLeave && !m.refused {
		if counts = l.check(m.ans.Incarnation); counts {
			counts, late = l.timely(l.reading(m), m.leapt)
		}
	}
	m.ans.Late = late
	if !counts {
		p.w.send(event{at: p.w.now + 1, kind: evFail, proc: p, gen: p.epoch, m: m})
		return
	}
	if m.inq != nil {
		p.told(m)
		return
	}
	m.att.outbox.Landed(&m.req)
	if m.refused {
		m.att.before()
		m.att.Fail(p.local(p.w.now), m.req, true)
		m.att.after()
		return
	}
	p.fanout.Answered(p.local(p.w.now), l.idx, p.local(p.w.now).Sub(m.req.Sent), p.nodeTimeout())
	p.fanout.Recovers(l.idx, m.ans.Status == protocol.Recovering)
	p.saw(m.ans.Ticket)
	if protocol.Lacks(&m.ans, m.att.Counting) {
		p.lookAt(l)
	}
	if p.w.trace != nil && !m.att.Phase().Final() {
		p.w.log("%v: node %d answers %v: %s", m.att, l.node.idx, m.req.Op, answerName(m.req, m.ans))
	}
	m.att.before()
	m.att.Answer(p.local(p.w.now), m.req, m.ans)
	if m.att.MissedResize(&m.ans) && p.mends(l.node) {
		p.repairEvent(func(r *protocol.Repair, now protocol.Time) { r.MissedResize(now, numberName, p.nodeTimeout()) })
	}
	m.att.after()
}

// told takes the answer to an inquiry.
func (p *proc) told(m *message) {
	if e := m.ans.Record; e != nil {
		p.saw(max(e.Ticket, e.Promise.Ticket))
	}
	if !m.refused && protocol.Lacks(&m.ans, false) {
		p.lookAt(m.link)
	}
	switch {
	case m.inq.over:
		return
	case m.refused:
		m.inq.Fail(p.local(p.w.now), m.req, true)
	default:
		m.inq.Answer(p.local(p.w.now), m.req, m.ans)
	}
	m.inq.after()
}

func (p *proc) push(node int, m protocol.Push) {
	p.saw(m.Ticket)
	for _, part := range p.parts {
		if a := part.att; a != nil && a.ID == m.ID {
			if p.w.trace != nil {
				p.w.log("%v: node %d pushes %s vote=%v", a, node, ticketName(m.Ticket), m.Vote)
			}
			a.before()
			a.Push(p.local(p.w.now), node, m)
			a.after()
		}
	}
}

func (p *proc) up(l *link) {
	for _, part := range p.parts {
		if a := part.att; a != nil && l.up && a.unsent[l.idx] == nil { // else it is about to ask
			a.before()
			a.fresh = true
			a.Up(p.local(p.w.now), l.idx)
			a.after()
		}
	}
	for _, i := range append([]*inquiry(nil), p.inquiries...) {
		i.Up(p.local(p.w.now), l.idx)
		i.after()
	}
}

func (p *proc) down(l *link) {
	for _, part := range p.parts {
		if a := part.att; a != nil && !l.up {
			a.before()
			a.Down(p.local(p.w.now), l.node.idx)
			a.after()
		}
	}
}

// crash ends the process: nothing is left, and no message is sent.
func (p *proc) crash() {
	p.w.log("process %s crashes", p.name)
	p.w.tape.note("kill %s", p.label)
	defer p.w.tape.within()()
	p.alive, p.paused, p.asleep, p.inbox = false, false, false, nil
	for _, part := range p.parts {
		part.vanish()
	}
	for _, l := range p.links {
		l.snap()
		l.leaves, l.backlog = nil, protocol.Backlog[*message]{}
	}
	p.inquiries = nil
	p.epoch++ // what is still to happen in its old life does not
}

// restart is a new process in its place, which knows nothing.
func (p *proc) restart() {
	if p.alive {
		return
	}
	p.w.log("process %s is started", p.name)
	p.w.tape.note("start %s", p.label)
	defer p.w.tape.within()()
	p.alive = true
	p.tickets = protocol.TicketClock{}
	p.waking, p.excused = false, 0
	p.adjust()
	p.judges()
	p.startRepairs()
	p.looks()
	for _, l := range p.links {
		l.connect()
	}
	for _, part := range p.parts {
		if part.value != nil && part.value.callers[0].auto {
			part.value.loop()
		}
		part.idleFor(p.w.around(p.w.think))
	}
	if p.w.record {
		p.reads()
	}
}

func (p *proc) pause() {
	if p.alive && !p.paused {
		p.w.log("process %s stops", p.name)
		p.w.tape.note("pause %s", p.label)
		p.paused = true
	}
}

// resume: what has come in is handled now. Whether timers or messages come
// first is the operating system's choice.
func (p *proc) resume() {
	if !p.paused {
		return
	}
	p.w.log("process %s goes on", p.name)
	if p.w.wire == nil {
		p.timersFirst = p.w.rng.IntN(2) == 0
	}
	p.w.tape.note("resume %s%s", p.label, map[bool]string{true: " timers"}[p.timersFirst])
	p.paused = false
	if p.asleep {
		end := p.w.tape.within()
		p.wake()
		end()
	}
	inbox := p.inbox
	p.inbox = nil
	for _, timers := range []bool{p.timersFirst, !p.timersFirst} {
		for _, e := range inbox {
			if (e.kind == evTimer) == timers {
				p.take(e)
			}
		}
	}
	defer p.w.tape.within()()
	for _, l := range p.links {
		l.connect()
	}
}
