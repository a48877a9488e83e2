//go:build search

package exhaustive

import (
	"time"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

// The nodes in a state, and how they handle requests.

// nodeParts are those that have been met.
type nodeParts struct {
	*traffic
	nodes   []nodePart
	nodeIDs map[string]uint32
	visits  map[nodeEvent]nodeMove
	buf     []byte
}

// nodePart is one node at one moment of its own clock.
type nodePart struct {
	n    *model.Node
	at   int64
	life protocol.Incarnation // the incarnation that it takes when it has none
	step uint32               // itself a unit later; 0: not yet known
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

func (x *nodeParts) node(p nodePart) uint32 {
	x.buf = p.n.Name("").AppendState(append(x.buf[:0], byte(p.life)), p.at)
	id, ok := x.nodeIDs[string(x.buf)]
	if !ok {
		id = uint32(len(x.nodes))
		x.nodes, x.nodeIDs[string(x.buf)] = append(x.nodes, p), id
	}
	return id
}

// visit is what a node does with a request.
func (x *nodeParts) visit(e nodeEvent) nodeMove {
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
	a, outs := p.n.Name("").Handle(p.at, x.cfg.terms(int(e.claim)), "", r)
	q.kind, q.status, q.inc, q.held, q.vote, q.wait = answer, a.Status, a.Incarnation,
		a.Ticket, a.Vote, int16(a.Wait/unit)
	if counting {
		q.told, q.listed, q.sum, q.digest, q.allSum, q.allDigest = a.HasTotals, a.Listed, a.Sum,
			a.Digest, a.AllSum, a.AllDigest
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

func (x *nodeParts) slot(id protocol.ID) int { return int(id[3]) - 1 }

// later is a node a unit later on its own clock.
func (x *nodeParts) later(id uint32) uint32 {
	if x.nodes[id].step == 0 {
		p := x.nodes[id]
		p.at++
		to := x.node(p)
		x.nodes[id].step = to
	}
	return x.nodes[id].step
}

// forgets is a node that has lost its data. It notices when it is next asked.
func (x *nodeParts) forgets(id uint32) uint32 {
	p := x.nodes[id]
	p.n, p.step = p.n.Clone(), 0
	p.n.Forget()
	p.life++
	return x.node(p)
}

// fresh is a node that has been in service for long.
func (x *nodeParts) fresh() uint32 {
	n := model.New(time.Duration(x.cfg.Guard) * unit)
	n.Off = x.cfg.Off
	n.Bootstrap(0, 1)
	return x.node(nodePart{n: n, at: int64(epoch) / int64(unit), life: 2})
}
