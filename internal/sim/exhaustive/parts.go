//go:build search

package exhaustive

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// claimEvent is what can happen to a claim.
type claimEvent struct {
	claim  uint32
	kind   claimEventKind
	slot   uint8 // of a claim that starts
	node   uint8
	full   uint8 // nodes that have no room for requests of the claim, a bit for each
	cut    uint8 // and those that it has lost
	msg    msgID
	ticket protocol.Ticket // T0, of a claim that starts or finds room
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
	evUp   // the connection to a node is back
	evRoom // a node has room again
)

type claimMove struct {
	claim    uint32
	sent     []sent
	phase    lease.Phase
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
		p = claimPart{slot: int(e.slot), a: new(process.Attempt), at: epoch}
	} else {
		p.a = p.a.Clone()
	}
	a := p.a
	before, deadline, wake := a.Phase(), a.Deadline(), a.Wake()
	m := claimMove{sent: x.tell(&p, e)}
	if e.kind == evTick && !before.Final() {
		switch {
		case x.mutant: // what a mutant sleeps through is of no interest
		case wake > p.at && (len(a.Out) > 0 || a.Phase() != before):
			m.wrong = "would have slept through something to do"
		case a.Wake() <= p.at:
			m.wrong = "wants to be woken again at once, without end"
		}
	}
	m.sent = append(m.sent, x.offer(p, e)...)
	a.Sent()
	a.News(new(process.Name))

	m.phase = a.Phase()
	m.admitted = before != lease.Holding && a.Phase() == lease.Holding
	p.ticket, p.final = a.Ticket(), a.Phase().Final()
	p.admitted = p.admitted || m.admitted
	p.valid = a.Valid(p.at)
	p.overdue = p.overdue || before == lease.Holding && p.at >= deadline && !p.final
	switch {
	case p.overdue && p.valid:
		m.wrong = "holds again what it had lost"
	case m.admitted && !p.valid:
		m.wrong = "was admitted by views that had ended"
	case p.final && !x.staysFinal(p):
		m.wrong = "came back after its end"
	}
	m.claim = x.claim(p)
	return m
}

// tell gives the attempt of p an event. It returns what is sent of that which
// waited for room.
func (x *space) tell(p *claimPart, e claimEvent) []sent {
	a, n := p.a, new(process.Name)
	switch e.kind {
	case evStart:
		x.clock = e.ticket - 1 // the lowest ticket above is proposed
		x.client.Start(p.at, a, n, x.cfg.begin(p.slot))
	case evAnswer:
		r, answer := x.request(*p, e), x.answer(x.msgs[e.msg])
		x.client.Answer(p.at, a, n, &r, &answer, protocol.Verdict{Why: protocol.Counts})
	case evPush:
		a.Push(p.at, int(e.node), x.push(p.slot, x.msgs[e.msg]))
	case evFail:
		r := x.request(*p, e)
		a.Fail(p.at, &r, false)
	case evTick:
		p.at = p.at.Add(unit)
		a.Tick(p.at)
	case evPause:
		p.at = p.at.Add(unit)
	case evLeave:
		a.Leave(p.at)
	case evUp:
		a.Up(p.at, int(e.node))
	case evRoom:
		x.clock = e.ticket - 1
		if r := a.Unsent(int(e.node)); r != nil && x.client.Depart(p.at, a, n, r) {
			return []sent{x.depart(a, r, e)}
		}
	}
	return nil
}

// offer does with what the claim wants sent what the runtime does.
func (x *space) offer(p claimPart, e claimEvent) (all []sent) {
	for i := range p.a.Out {
		r := p.a.Out[i]
		// The backlog has nothing but what is of this attempt, and is replaced
		// or withdrawn by then.
		if p.a.Offer(&r, func(protocol.Class) bool { return false }) != protocol.Hand {
			continue
		}
		if e.full&(1<<r.Node) != 0 {
			p.a.Waits(&r)
			continue
		}
		all = append(all, x.depart(p.a, &r, e))
	}
	return all
}

// depart hands a request to the link.
func (x *space) depart(a *process.Attempt, r *protocol.Request, e claimEvent) sent {
	took := protocol.Accepted
	if e.cut&(1<<r.Node) != 0 {
		took = protocol.NotSent // and a failure follows: see happen
	}
	a.Departed(r, took)
	m := message{kind: request, op: r.Op, ticket: r.Ticket, list: r.List}
	if r.Op == protocol.OpBeat || r.Op == protocol.OpLeave {
		m.ticket = 0 // not looked at
	}
	return sent{uint8(r.Node), x.msg(m)}
}

// staysFinal throws everything at a claim that has ended.
func (x *space) staysFinal(p claimPart) bool {
	a := p.a.Clone()
	for i := range nodes {
		r := protocol.Request{Node: i, Op: protocol.OpBeat, Sent: p.at}
		x.client.Answer(p.at, a, new(process.Name), &r, &protocol.Answer{Status: protocol.OK, Ticket: a.Ticket(), Vote: true}, protocol.Verdict{Why: protocol.Counts})
		a.Push(p.at, i, protocol.Push{ID: a.ID, Ticket: a.Ticket(), Vote: true})
		a.Up(p.at, i)
	}
	a.Renew(p.at)
	a.Tick(p.at.Add(unit))
	a.Leave(p.at.Add(unit))
	return a.Phase() == p.a.Phase() && len(a.Out) == 0
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
	if _, marked := p.n.Incarnation(); !marked {
		p.n.Mark(p.at, p.life)
	}
	a, outs := p.n.Handle(p.at, x.cfg.terms(int(e.claim)), "", r)
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
	n.Bootstrap(0, 1)
	return x.node(nodePart{n: n, at: int64(epoch) / int64(unit), life: 2})
}
