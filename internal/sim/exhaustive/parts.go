package exhaustive

import (
	"time"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

// claimEvent is what can happen to a claim.
type claimEvent struct {
	claim  uint32
	kind   claimEventKind
	slot   uint8 // of a claim that starts
	node   uint8
	msg    msgID
	ticket protocol.Ticket // of a claim that starts
}

type claimEventKind uint8

const (
	evStart claimEventKind = iota
	evAnswer
	evPush
	evFail
	evTick
	evPause // time passes and the process does not notice
	evLeave
)

type claimMove struct {
	claim    uint32
	sent     []sent
	phase    protocol.Phase
	admitted bool   // just now
	wrong    string // what it did that no claim may ever do
}

type sent struct {
	node uint8
	msg  msgID
}

// move is what a claim does on an event.
func (x *space) move(e claimEvent) claimMove {
	m, ok := x.moves[e]
	if !ok {
		m = x.compute(e)
		x.moves[e] = m
	}
	return m
}

func (x *space) compute(e claimEvent) claimMove {
	p := x.claims[e.claim]
	p.renamed = [6]uint32{}
	if e.kind == evStart {
		p = claimPart{slot: int(e.slot), c: x.cfg.claim(int(e.slot)), at: epoch}
	} else {
		p.c = p.c.Clone()
	}
	c := p.c
	c.Out = c.Out[:0]
	before, deadline, wake := c.Phase(), c.Deadline(), c.Wake()
	var wrong string
	switch e.kind {
	case evStart:
		claimConfig := x.cfg.Claims[e.slot]
		c.Start(p.at, e.ticket, claimConfig.Later, time.Duration(claimConfig.After)*unit)
	case evAnswer:
		c.Answer(p.at, x.request(p, e), x.answer(x.msgs[e.msg]))
	case evPush:
		c.Push(p.at, int(e.node), x.push(p.slot, x.msgs[e.msg]))
	case evFail:
		c.Fail(p.at, x.request(p, e), false)
	case evTick:
		p.at = p.at.Add(unit)
		c.Tick(p.at)
		switch {
		case x.mutant: // what a mutant sleeps through is of no interest
		case wake > p.at && (len(c.Out) > 0 || c.Phase() != before):
			wrong = "would have slept through something to do"
		case c.Wake() <= p.at:
			wrong = "wants to be woken again at once, without end"
		}
	case evPause:
		p.at = p.at.Add(unit)
	case evLeave:
		c.Leave(p.at)
	}

	m := claimMove{phase: c.Phase(), wrong: wrong}
	m.admitted = before != protocol.Holding && c.Phase() == protocol.Holding
	p.ticket, p.final = c.Ticket(), c.Phase().Final()
	p.admitted = p.admitted || m.admitted
	p.valid = c.Phase() == protocol.Holding && p.at < c.Deadline()
	p.overdue = p.overdue || before == protocol.Holding && p.at >= deadline && !p.final
	switch {
	case p.overdue && p.valid:
		m.wrong = "holds again what it had lost"
	case m.admitted && !p.valid:
		m.wrong = "was admitted by views that had ended"
	case p.final && !x.staysFinal(p):
		m.wrong = "came back after its end"
	}
	for _, r := range c.Out {
		if r.Op == protocol.OpBeat || r.Op == protocol.OpLeave {
			r.Ticket = 0 // not looked at
		}
		m.sent = append(m.sent, sent{uint8(r.Node), x.msg(message{kind: request, op: r.Op, ticket: r.Ticket, list: r.List})})
	}
	c.Sent()
	m.claim = x.claim(p)
	return m
}

// staysFinal throws everything at a claim that has ended.
func (x *space) staysFinal(p claimPart) bool {
	c := p.c.Clone()
	c.Out = c.Out[:0]
	for i := range nodes {
		c.Answer(p.at, protocol.Request{Node: i, Op: protocol.OpBeat, Sent: p.at}, protocol.Answer{Status: protocol.OK, Ticket: c.Ticket(), Vote: true})
		c.Push(p.at, i, protocol.Push{ID: c.ID, Ticket: c.Ticket(), Vote: true})
		c.Up(p.at, i)
	}
	c.Renew(p.at)
	c.Tick(p.at.Add(unit))
	c.Leave(p.at.Add(unit))
	return c.Phase() == p.c.Phase() && len(c.Out) == 0
}

func (x *space) request(p claimPart, e claimEvent) protocol.Request {
	m := x.msgs[e.msg]
	return protocol.Request{
		Node: int(e.node), Op: m.op, Ticket: m.ticket, List: m.list, Sent: p.at.Add(-time.Duration(m.age) * unit),
	}
}

func (x *space) answer(m message) protocol.Answer {
	a := protocol.Answer{
		Status: m.status, Incarnation: m.inc, Ticket: m.held, Vote: m.vote, Wait: time.Duration(m.wait) * unit,
		HasTotals: m.told, Listed: m.listed, Sum: m.sum, Digest: m.digest,
		AllSum: m.allSum, AllDigest: m.allDigest,
	}
	for i := range x.cfg.Claims {
		if m.lower&(1<<i) != 0 {
			a.Lower = append(a.Lower, protocol.Lower{ID: x.cfg.id(i), Weight: x.cfg.Claims[i].Weight})
		}
	}
	return a
}

func (x *space) push(slot int, m message) protocol.Push {
	return protocol.Push{
		ID: x.cfg.id(slot), Incarnation: m.inc, Ticket: m.ticket, Vote: true, Sum: m.sum, Digest: m.digest,
	}
}

// nodeEvent is a request that arrives.
type nodeEvent struct {
	node  uint32
	claim uint8
	msg   msgID
}

type nodeMove struct {
	node   uint32
	answer msgID
	pushes []pushed
}

type pushed struct {
	claim uint8
	msg   msgID
}

// visit is what a node does with a request.
func (x *space) visit(e nodeEvent) nodeMove {
	v, ok := x.visits[e]
	if ok {
		return v
	}
	p := x.nodes[e.node]
	p.n, p.step = p.n.Clone(), 0
	q := x.msgs[e.msg]
	// What a mutex does not read is left out: it would only tell equal states
	// apart.
	counting := x.cfg.Capacity > 1
	r := protocol.Request{Op: q.op, Ticket: q.ticket, List: q.list}
	a, outs := p.n.Handle(p.at, x.cfg.terms(int(e.claim)), "", r, p.life)
	q.kind, q.status, q.inc, q.held, q.vote, q.wait = answer, a.Status, a.Incarnation, a.Ticket, a.Vote, int16(a.Wait/unit)
	if counting {
		q.told, q.listed, q.sum, q.digest, q.allSum, q.allDigest = a.HasTotals, a.Listed, a.Sum, a.Digest, a.AllSum, a.AllDigest
		for _, l := range a.Lower {
			q.lower |= 1 << x.slot(l.ID)
		}
	}
	v.node, v.answer = x.node(p), x.msg(q)
	for _, o := range outs {
		m := message{kind: push, ticket: o.Push.Ticket, inc: o.Push.Incarnation}
		if counting {
			m.sum, m.digest = o.Push.Sum, o.Push.Digest
		}
		v.pushes = append(v.pushes, pushed{uint8(x.slot(o.Push.ID)), x.msg(m)})
	}
	x.visits[e] = v
	return v
}

func (x *space) slot(id protocol.ID) int { return int(id[3]) - 1 }

// later is a node a unit later on its own clock.
func (x *space) later(id uint32) uint32 {
	if x.nodes[id].step == 0 {
		p := x.nodes[id]
		p.at++
		to := x.node(p)
		x.nodes[id].step = to
	}
	return x.nodes[id].step
}

// forgets is a node that has lost its data. It notices when it is next asked.
func (x *space) forgets(id uint32) uint32 {
	p := x.nodes[id]
	p.n, p.step = p.n.Clone(), 0
	p.n.Forget()
	p.life++
	return x.node(p)
}

// fresh is a node that has been in service for long.
func (x *space) fresh() uint32 {
	n := model.New(time.Duration(x.cfg.Guard) * unit)
	n.Off = x.cfg.Off
	n.Bootstrap(0, 1, false)
	return x.node(nodePart{n: n, at: int64(epoch) / int64(unit), life: 2})
}
