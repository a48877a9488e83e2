//go:build search

package exhaustive

import (
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// space interns the parts that states are made of. A state is then a few
// numbers, and what one part does on one event is computed once and looked up
// ever after: that, and not a fast clone, is what makes the search fit.
type space struct {
	cfg    Config
	mutant bool

	client *process.Client
	clock  protocol.Ticket // what it takes for the nodes' clocks

	msgs   []message
	msgIDs map[message]msgID
	older  []msgID

	links   []linkPart
	linkIDs map[link]uint32

	cols   []column
	colIDs map[column]uint32

	claims   []claimPart
	claimIDs map[string]uint32
	moves    map[claimEvent]claimMove

	nodes   []nodePart
	nodeIDs map[string]uint32
	visits  map[nodeEvent]nodeMove

	buf []byte
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

// nodePart is one node at one moment of its own clock.
type nodePart struct {
	n    *model.Node
	at   int64
	life protocol.Incarnation // the incarnation that it takes when it has none
	step uint32               // itself a unit later; 0: not yet known
}

// linkPart is what is on its way between a claim and a node, and what becomes
// of it: a unit later, when the claim has ended, and when no more beats arrive.
type linkPart struct {
	link
	become [4]uint32 // 1 + the number of a link; 0: not yet known
}

// epoch is when searches begin. It is not 0, which claims take for "none".
const epoch = protocol.Time(1000 * unit)

func newSpace(cfg Config) *space {
	x := &space{
		cfg: cfg, mutant: cfg.Rules != protocol.Rules{} || cfg.Off != 0,
		msgs: make([]message, 1), msgIDs: map[message]msgID{}, older: make([]msgID, 1),
		links: make([]linkPart, 1), linkIDs: map[link]uint32{{}: 0},
		cols: make([]column, 1), colIDs: map[column]uint32{},
		claims: make([]claimPart, 1), claimIDs: map[string]uint32{}, moves: map[claimEvent]claimMove{},
		nodes: make([]nodePart, 1), nodeIDs: map[string]uint32{}, visits: map[nodeEvent]nodeMove{},
	}
	x.client = cfg.client(&x.clock)
	return x
}

func (x *space) msg(m message) msgID {
	m.age = min(m.age, uint8(x.cfg.TTL+2)) // no lease of that age is running
	id, ok := x.msgIDs[m]
	if !ok {
		if len(x.msgs) > 1<<16-1 {
			panic("exhaustive: too many different messages")
		}
		id = msgID(len(x.msgs))
		x.msgs, x.older, x.msgIDs[m] = append(x.msgs, m), append(x.older, 0), id
	}
	return id
}

// aged is m a unit later.
func (x *space) aged(m msgID) msgID {
	if x.msgs[m].kind == push {
		return m
	}
	if x.older[m] == 0 {
		next := x.msgs[m]
		next.age++
		id := x.msg(next)
		x.older[m] = id
	}
	return x.older[m]
}

func (x *space) link(l link) uint32 {
	id, ok := x.linkIDs[l]
	if !ok {
		id = uint32(len(x.links))
		x.links, x.linkIDs[l] = append(x.links, linkPart{link: l}), id
	}
	return id
}

// change is what happens to a whole link at once.
type change uint8

const (
	ages      change = iota // a unit passes
	agesAlone               // a unit passes, and the claim has ended
	ends                    // the claim ends: nothing travels to it any more
	hushes                  // the beats that are under way will not arrive
)

// become is link id after the change.
func (x *space) become(id uint32, c change) uint32 {
	if id == 0 {
		return 0
	}
	if to := x.links[id].become[c]; to > 0 {
		return to - 1
	}
	l := x.links[id].link
	l.rewrite(func(m msgID, late bool) msgID { return x.changed(m, late, c) })
	to := x.link(l)
	x.links[id].become[c] = to + 1
	return to
}

func (x *space) changed(id msgID, late bool, c change) msgID {
	m := x.msgs[id]
	switch {
	case c == ages:
		return x.aged(id)
	case c == hushes && m.kind == request && m.op == protocol.OpBeat, c == ends && m.kind != request:
		return 0
	case c == hushes:
		return id
	case late || x.cfg.Delay == Unbounded: // its age no longer matters
		m.age = 0
		return x.msg(m)
	case c == ends:
		return id
	}
	return x.aged(id)
}

func (x *space) col(c column) uint32 {
	id, ok := x.colIDs[c]
	if !ok {
		id = uint32(len(x.cols))
		x.cols, x.colIDs[c] = append(x.cols, c), id
	}
	return id
}

func (x *space) claim(p claimPart) uint32 {
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

func (x *space) node(p nodePart) uint32 {
	x.buf = p.n.AppendState(append(x.buf[:0], byte(p.life)), p.at)
	id, ok := x.nodeIDs[string(x.buf)]
	if !ok {
		id = uint32(len(x.nodes))
		x.nodes, x.nodeIDs[string(x.buf)] = append(x.nodes, p), id
	}
	return id
}

// orders are the ways to rename three nodes.
var orders = [6][nodes]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

// renamed is claim part id with the nodes in another order.
func (x *space) renamed(id uint32, order int) uint32 {
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
