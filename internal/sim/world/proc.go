package world

import (
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// What a process is, and how it reacts to what it hears. Its Client is driven
// by client.go.

// Epoch is what the nodes' clocks show at true time 0, in microseconds.
const Epoch = protocol.Ticket(1_700_000_000_000_000)

// Proc is a client process.
type Proc struct {
	machine
	cables
	Follower    follower
	Mender      mender
	tasks       tasks
	RegisterOps registerOps
	World       *World
	Name        string // as the nodes know it
	Label       string // in traces
	Client      *process.Client
	names       []*process.Name // what its claims of a name share
	places      int             // for attempts on the way to their first answers; see core.MaxStarting
	crowd       []*Participant  // that wait for one, in order
	Parts       []*Participant
	Index       int
	TTL         time.Duration  // of its claims, unless the set allows less
	Own         nodeset.Shared // its settings, for a set that it records
	clientTimer course.Moment  // when the Client gets its Tick
}

func NewProc(w *World, i int) *Proc {
	p := &Proc{World: w, Name: strconv.Itoa(i), Label: string(rune('a' + i)), Index: i,
		TTL: w.TTL, Own: w.Settings()}
	p.machine = machine{p: p, Clock: course.NewClock(w.RNG, &w.Setting), Alive: true}
	p.Follower.p, p.Mender.p, p.RegisterOps.p = p, p, p
	p.Adjust()
	for i, n := range w.Nodes {
		p.Links = append(p.Links, &Link{Proc: p, Node: n, Index: i, No: i, Up: true, open: true,
			last: [2]course.Moment{w.Now, w.Now}})
	}
	p.nowhere = &Link{Proc: p, Node: w.Nodes[0], No: -1, at: "nowhere"}
	p.begin()
	for _, l := range p.Links {
		l.reach()
	}
	for j := range w.Parts {
		p.Parts = append(p.Parts, NewParticipant(p, j))
	}
	return p
}

// lease is the ttl of a claim that begins now.
func (p *Proc) lease() time.Duration {
	if most := p.Client.Group().LongestTTL; most > 0 {
		return min(p.TTL, most)
	}
	return p.TTL
}

// Propose is an attempt that comes to nothing before anything of it is sent.
func (p *Proc) Propose() {
	var a process.Attempt
	cfg := p.Client.Config(false)
	cfg.Terms = protocol.Terms{ID: p.World.NewID(), Weight: 1, Capacity: p.World.Capacity, TTL: p.TTL}
	cfg.NodeTimeout = p.World.NodeTimeout
	p.Client.Start(p.Now(), &a, p.names[0], cfg, lease.Links{}, lease.Deferral{})
}

// take handles an event of the process, now or when it goes on.
func (p *Proc) take(e Event) {
	if e.Gen != p.Epoch {
		return
	}
	if p.Paused {
		p.inbox = append(p.inbox, e)
		return
	}
	switch e.Kind {
	case EvAnswer:
		p.answer(e.M)
	case evFail:
		if e.M.inq != nil {
			if !e.M.silent {
				e.M.inq.Op.Fail(p.Now(), e.M.Req, false)
				e.M.inq.after()
			}
			return
		}
		if e.M.silent {
			p.Later(p.World.NodeTimeout, func() { p.failed(e.M, false) })
			return
		}
		p.failed(e.M, false)
	case evPush, evProc:
		e.fn()
	case EvTimer:
		e.Att.fire(e.At)
	case EvUp:
		p.up(e.M.Link, e.M.Req.Node)
	case EvDown:
		p.down(e.M.Link, e.M.Req.Node)
	}
}

func (p *Proc) answer(m *Message) {
	l := m.Link
	if m.Gen != l.Gen {
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
			m.inq.Op.Fail(p.Now(), m.Req, false)
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
	if p.World.Trace != nil && !m.att.Claim.State.Phase().Final() {
		p.World.Log("%v: node %d answers %v: %s", m.att, l.Node.Index, m.Req.Op, AnswerName(m.Req, m.ans))
	}
	var do []process.Action
	m.att.event(func() {
		_, do = p.Client.Answer(p.Now(), m.att.Claim,
			m.att.Part.shared(), &m.Req, &m.ans, v)
	})
	p.CarryOut(do)
}

// refused takes a request that the node has refused.
func (p *Proc) refused(m *Message) {
	if !m.forNow {
		p.failed(m, true)
		return
	}
	var pause time.Duration
	m.att.event(func() { pause = m.att.Claim.Refused(p.Now(), &m.Req) })
	if pause > 0 {
		again := *m
		again.refused, again.forNow = false, false
		p.Later(pause, func() { again.Link.transfer(&again) })
	}
}

// failed takes a request that will not be answered.
func (p *Proc) failed(m *Message, permanent bool) {
	m.att.event(func() { m.att.Claim.Fail(p.Now(), &m.Req, permanent) })
}

// registerReply takes the answer to a register operation.
func (p *Proc) registerReply(m *Message, v protocol.Verdict) {
	switch {
	case m.inq.over:
		return
	case m.refused:
		m.inq.Op.Fail(p.Now(), m.Req, !m.forNow)
	default:
		m.inq.Op.Reply(p.Now(), m.Req, m.ans, v)
	}
	m.inq.after()
}

func (p *Proc) push(node int, m protocol.Push) {
	for _, part := range p.Parts {
		if a := part.Att; a != nil && a.Claim.State.ID == m.ID {
			if p.World.Trace != nil {
				p.World.Log("%v: node %d pushes %s vote=%v", a, node, TicketName(m.Ticket), m.Vote)
			}
			a.event(func() { a.Claim.Push(p.Now(), node, m) })
		}
	}
}

func (p *Proc) up(l *Link, no int) {
	if no != l.No || no < 0 || no >= nodeset.Seed {
		return
	}
	for _, part := range p.Parts {
		if a := part.Att; a != nil && l.Up {
			a.event(func() { a.Claim.Up(p.Now(), no) })
		}
	}
	p.RegisterOps.each(func(i *RegisterOp) { i.Op.Up(p.Now(), no) })
}

func (p *Proc) down(l *Link, no int) {
	for _, part := range p.Parts {
		if a := part.Att; a != nil && !l.Up {
			a.event(func() { a.Claim.Down(p.Now(), no) })
		}
	}
}

// Again has a request of a reach n a second time, from a connection that is no
// more.
func (p *Proc) Again(a *Attempt, n *Node, op protocol.Op) {
	if a != nil {
		m := &Message{att: a, Link: p.To(n), terms: a.Claim.State.Terms,
			Req: protocol.Request{Node: n.Index, Op: op, Ticket: a.T0}}
		p.World.send(Event{At: p.World.Now.Add(p.World.Delay), Kind: EvLate, M: m})
	}
}

// cables are all connections of one process.
type cables struct {
	Links   []*Link // to each node; more where an address leads to another server
	nowhere *Link   // stands for a member whose address leads to no server
}

func (c *cables) To(n *Node) *Link { return c.Links[n.Index] }

// Link is the connection of a number.
func (c *cables) Link(i int) *Link {
	for _, l := range c.Links {
		if l.No == i {
			return l
		}
	}
	return c.nowhere
}

// Cut holds up everything between a process and some nodes.
func (c *cables) Cut(ns ...*Node) {
	for _, n := range ns {
		c.To(n).Cut(Requests, Answers)
	}
}

func (c *cables) Mend(ns ...*Node) {
	for _, n := range ns {
		c.To(n).Heal(false)
	}
}

// reaches: a question to the node would be answered.
func (c *cables) reaches(n *Node) bool {
	l := c.To(n)
	return l.Up && !n.Down && !n.Paused && !l.stalled[Requests] && !l.stalled[Answers]
}

// Numbered returns which number the process gives to a node, -1 if the node is
// no member.
func (c *cables) Numbered(n *Node) int {
	if l := c.To(n); l.member() {
		return l.No
	}
	return -1
}
