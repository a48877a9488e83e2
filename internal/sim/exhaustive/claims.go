//go:build search

package exhaustive

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// The claims in a state, and how they handle events.

// claimParts are those that have been met.
type claimParts struct {
	*traffic
	mutant bool
	client *process.Client
	clock  protocol.Ticket // what it takes for the nodes' clocks

	claims   []claimPart
	claimIDs map[string]uint32
	moves    map[claimEvent]claimMove
	buf      []byte
}

// claimPart is one claim at one moment of its own clock. Part 0 is a claim that
// has not started.
type claimPart struct {
	slot   int
	a      *process.Attempt // nil when nothing more comes of it
	at     protocol.Time
	final  bool
	ticket protocol.Ticket
	// admitted: it has been a holder at some time. valid: it is one now.
	// overdue: its deadline has passed, so it must never be valid again.
	admitted, valid, overdue bool
	renamed                  [6]uint32 // by the order of nodes; 0: not yet known
}

// epoch is when searches begin. It is not 0, which claims take for "none".
const epoch = protocol.Time(1000 * unit)

// orders are the ways to rename three nodes.
var orders = [6][nodes]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

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
	admitted bool   // just now
	wrong    string // what it did that no claim may ever do
}

type sent struct {
	node uint8
	msg  msgID
}

func (x *claimParts) claim(p claimPart) uint32 {
	b := append(x.buf[:0], byte(p.slot))
	for _, f := range []bool{p.final, p.admitted, p.overdue} {
		b = append(b, '-')
		if f {
			b[len(b)-1] = '+'
		}
	}
	if p.final {
		// Later tickets are still compared with its own.
		if p.valid = false; !p.admitted {
			p.ticket = 0
		}
		b = append(b, byte(p.ticket), byte(p.ticket>>8))
	}
	if p.a.Over() {
		p.a, p.at = nil, 0
	} else {
		b = p.a.AppendState(b, p.at)
	}
	x.buf = b
	id, ok := x.claimIDs[string(b)]
	if !ok {
		id = uint32(len(x.claims))
		x.claims, x.claimIDs[string(b)] = append(x.claims, p), id
	}
	return id
}

// renamed is claim part id with the nodes in another order.
func (x *claimParts) renamed(id uint32, order int) uint32 {
	p := &x.claims[id]
	if id == 0 || p.a == nil || order == 0 {
		return id
	}
	if p.renamed[order] == 0 {
		q := *p
		q.a, q.renamed = p.a.Permuted(orders[order][:]), [6]uint32{}
		to := x.claim(q)
		x.claims[id].renamed[order] = to
		return to
	}
	return p.renamed[order]
}

// move is what a claim does on an event.
func (x *claimParts) move(e claimEvent) claimMove {
	m, ok := x.moves[e]
	if !ok {
		m = x.compute(e)
		x.moves[e] = m
	}
	return m
}

func (x *claimParts) compute(e claimEvent) claimMove {
	p := x.claims[e.claim]
	p.renamed = [6]uint32{}
	if e.kind == evStart {
		p = claimPart{slot: int(e.slot), a: new(process.Attempt), at: epoch}
	} else {
		p.a = p.a.Clone()
	}
	a := p.a
	before, deadline, wake := a.State.Phase(), a.Deadline(), a.Wake()
	m := claimMove{sent: x.tell(&p, e)}
	if e.kind == evTick && !before.Final() {
		switch {
		case x.mutant: // what a mutant sleeps through is of no interest
		case wake > p.at && (len(a.Out) > 0 || a.State.Phase() != before):
			m.wrong = "would have slept through something to do"
		case a.Wake() <= p.at:
			m.wrong = "wants to be woken again at once, without end"
		}
	}
	send, _ := a.Step(new(process.Name))
	m.sent = append(m.sent, x.enqueue(p, e, send)...)
	lease.Free(send)

	m.admitted = before != lease.Holding && a.State.Phase() == lease.Holding
	p.ticket, p.final = a.State.Ticket(), a.State.Phase().Final()
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
func (x *claimParts) tell(p *claimPart, e claimEvent) []sent {
	a, n := p.a, new(process.Name)
	switch e.kind {
	case evStart:
		x.clock = e.ticket - 1 // the lowest ticket above is proposed
		x.cfg.start(x.client, p.at, a, n, p.slot)
	case evAnswer:
		r, answer := x.request(*p, e), x.answer(x.msgs[e.msg])
		x.client.Answer(p.at, a, n, &r, &answer, protocol.Verdict{Why: protocol.Counts})
	case evPush:
		m := x.msgs[e.msg]
		a.Push(p.at, int(e.node), protocol.Push{ID: x.cfg.id(p.slot), Incarnation: m.inc, Ticket: m.ticket,
			Vote: true, Sum: m.sum, Digest: m.digest})
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
		if r := a.Unsent(int(e.node)); r != nil && x.client.Sending(p.at, a, n, r) {
			return []sent{x.depart(a, r, e)}
		}
	}
	return nil
}

// enqueue does with what is to be sent what the runtime does. The backlog has
// nothing but what is of this attempt, and is replaced or withdrawn by then.
func (x *claimParts) enqueue(p claimPart, e claimEvent, send []protocol.Request) (all []sent) {
	for _, r := range send {
		if e.full&(1<<r.Node) != 0 {
			p.a.MarkWaiting(&r)
			continue
		}
		all = append(all, x.depart(p.a, &r, e))
	}
	return all
}

// depart hands a request to the link.
func (x *claimParts) depart(a *process.Attempt, r *protocol.Request, e claimEvent) sent {
	a.Sent(r, e.cut&(1<<r.Node) == 0) // else a failure follows: see happen
	m := message{kind: request, op: r.Op, ticket: r.Ticket, list: r.List, patient: r.Patient}
	if r.Op == protocol.OpBeat || r.Op == protocol.OpLeave {
		m.ticket = 0 // not looked at
	}
	return sent{uint8(r.Node), x.msg(m)}
}

// staysFinal throws everything at a claim that has ended.
func (x *claimParts) staysFinal(p claimPart) bool {
	a := p.a.Clone()
	for i := range nodes {
		r := protocol.Request{Node: i, Op: protocol.OpBeat, Sent: p.at}
		x.client.Answer(p.at, a, new(process.Name), &r, &protocol.Answer{Status: protocol.OK,
			Ticket: a.State.Ticket(), Vote: true}, protocol.Verdict{Why: protocol.Counts})
		a.Push(p.at, i, protocol.Push{ID: a.State.ID, Ticket: a.State.Ticket(), Vote: true})
		a.Up(p.at, i)
	}
	a.Renew(p.at)
	a.Tick(p.at.Add(unit))
	a.Leave(p.at.Add(unit))
	return a.State.Phase() == p.a.State.Phase() && len(a.Out) == 0
}

func (x *claimParts) request(p claimPart, e claimEvent) protocol.Request {
	m := x.msgs[e.msg]
	return protocol.Request{
		Node: int(e.node), Op: m.op, Ticket: m.ticket, List: m.list, Patient: m.patient,
		Sent: p.at.Add(-time.Duration(m.age) * unit),
	}
}

func (x *claimParts) answer(m message) protocol.Answer {
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
