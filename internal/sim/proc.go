package sim

import (
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// epoch is what the nodes' clocks show at true time 0, in microseconds.
const epoch = protocol.Ticket(1_700_000_000_000_000)

// proc is a client process.
type proc struct {
	clock
	w           *world
	name        string        // as the nodes know it
	label       string        // in traces
	wall        time.Duration // how far its T0s are off
	off         time.Duration // by how much they are wrong, beyond the skew
	links       []*link       // to each node; more where an address leads to another server
	nowhere     *link         // stands for a member whose address leads to no server
	client      *process.Client
	names       []*process.Name // what its claims of a name share
	intake      process.Intake[*participant]
	parts       []*participant
	registerOps []*registerOp

	members     *nodeset.Membership // nil: its nodes are those of the world, and no set
	list        []*node             // that it begins with
	recording   bool                // see records
	grouped     *nodeset.Configuration
	index       int
	clientTimer moment         // when the Client gets its Tick
	reading     []int          // by node: names that it is bringing there
	mended      map[*node]bool // in a trace: that it repairs
	repaired    map[int]string // in a trace: what was last said of that, per node
	succession  *participant   // for the register that decides which configuration follows
	decider     *participant   // one of parts, once there is one

	asleep  bool   // its clock stands still
	slept   moment // since when
	waking  bool   // it did, and no node has answered since
	woke    protocol.Time
	excused moment // until then it cannot be held to what it does not know yet

	alive, paused bool
	closed        bool   // Close has been called
	epoch         uint32 // counts its lives
	inbox         []event
	timersFirst   bool // in traces: what resume handles first
}

func newProc(w *world, i int) *proc {
	p := &proc{w: w, name: strconv.Itoa(i), label: string(rune('a' + i)), clock: newClock(w.rng, &w.setting), alive: true, index: i}
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

func (p *proc) ttl() time.Duration         { return p.w.ttl }
func (p *proc) guard() time.Duration       { return p.settings().Guard }
func (p *proc) nodeTimeout() time.Duration { return p.w.nodeTimeout }

// lease is the ttl of a claim that begins now.
func (p *proc) lease() time.Duration {
	if most := p.client.Group().LongestTTL; most > 0 {
		return min(p.ttl(), most)
	}
	return p.ttl()
}

// settings are those of the set that it counts on, or its own.
func (p *proc) settings() nodeset.Shared {
	if p.members != nil && p.members.Config() != nil {
		c := p.members.Config()
		return nodeset.Shared{Guard: c.Guard(), Retention: c.Retention(), Skew: c.Skew()}
	}
	return p.w.settings()
}

// adjust has T0s be off by another time; two processes' never differ by more
// than the skew.
func (p *proc) adjust() {
	p.wall = p.off
	if s := int64(p.w.skew); s > 0 && p.w.offsets {
		p.wall += time.Duration(p.w.rng.Int64N(s+1) - s/2)
	}
}

// skewed is what the process takes for the nodes' clocks, where these show t.
// Nothing may rest on that but being served. A connection shows the clock of
// its node as it begins. Here connections may be there from the start, so until
// the process has heard of a node it takes what the first one would show if it
// had not jumped.
func (p *proc) skewed(t protocol.Ticket) protocol.Ticket {
	if n := p.w.nodes[0]; t < epoch/2 {
		t = protocol.Ticket((n.read(p.w.now) - int64(n.wrong)) / 1000)
	}
	return protocol.Ticket(int64(t) + p.wall.Microseconds())
}

// propose is an attempt that comes to nothing before anything of it is sent.
func (p *proc) propose() {
	var a process.Attempt
	p.client.Start(p.now(), &a, p.names[0], &process.Begin{
		Terms: protocol.Terms{ID: p.w.newID(), Weight: 1, Capacity: p.w.capacity, TTL: p.ttl()}, NodeTimeout: p.nodeTimeout(), Rules: p.w.rules,
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
			p.later(p.nodeTimeout(), func() { p.failed(e.m, false) })
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
		p.failed(m, true)
		return
	}
	if p.w.trace != nil && !m.att.Phase().Final() {
		p.w.log("%v: node %d answers %v: %s", m.att, l.node.idx, m.req.Op, answerName(m.req, m.ans))
	}
	m.att.before()
	do := p.client.Answer(p.now(), m.att.Attempt, m.att.part.shared(), &m.req, &m.ans, v)
	m.att.after()
	p.carryOut(do)
}

// failed takes a request that will not be answered.
func (p *proc) failed(m *message, forGood bool) {
	m.att.before()
	m.att.Attempt.Fail(p.now(), &m.req, forGood)
	m.att.after()
}

// registerReply takes the answer to a register operation.
func (p *proc) registerReply(m *message, v protocol.Verdict) {
	switch {
	case m.inq.over:
		return
	case m.refused:
		m.inq.Fail(p.now(), m.req, true)
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
			a.before()
			a.Push(p.local(p.w.now), node, m)
			a.after()
		}
	}
}

func (p *proc) up(l *link, no int) {
	if no != l.no || no < 0 || no >= nodeset.Seed {
		return
	}
	for _, part := range p.parts {
		if a := part.att; a != nil && l.up {
			a.before()
			a.Up(p.local(p.w.now), no)
			a.after()
		}
	}
	for _, i := range append([]*registerOp(nil), p.registerOps...) {
		i.Up(p.local(p.w.now), no)
		i.after()
	}
}

func (p *proc) down(l *link, no int) {
	for _, part := range p.parts {
		if a := part.att; a != nil && !l.up {
			a.before()
			a.Down(p.local(p.w.now), no)
			a.after()
		}
	}
}
