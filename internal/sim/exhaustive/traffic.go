//go:build search

package exhaustive

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// The parts of a state that are in flight.

// traffic are the messages that have been met, what links have had under way,
// and nodes with their links.
type traffic struct {
	cfg Config

	msgs   []message
	msgIDs map[message]msgID
	older  []msgID

	links   []linkPart
	linkIDs map[link]uint32

	cols   []column
	colIDs map[column]uint32
}

// linkPart is what is on its way between a claim and a node, and what becomes
// of it: a unit later, when the claim has ended, and when no more beats arrive.
type linkPart struct {
	link
	become [4]uint32 // 1 + the number of a link; 0: not yet known
}

// change is what happens to a whole link at once.
type change uint8

const (
	ages      change = iota // a unit passes
	agesAlone               // a unit passes, and the claim has ended
	ends                    // the claim ends: nothing travels to it any more
	hushes                  // the beats that are under way will not arrive
)

func (x *traffic) msg(m message) msgID {
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
func (x *traffic) aged(m msgID) msgID {
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

func (x *traffic) link(l link) uint32 {
	id, ok := x.linkIDs[l]
	if !ok {
		id = uint32(len(x.links))
		x.links, x.linkIDs[l] = append(x.links, linkPart{link: l}), id
	}
	return id
}

// become is link id after the change.
func (x *traffic) become(id uint32, c change) uint32 {
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

func (x *traffic) changed(id msgID, late bool, c change) msgID {
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

func (x *traffic) col(c column) uint32 {
	id, ok := x.colIDs[c]
	if !ok {
		id = uint32(len(x.cols))
		x.cols, x.colIDs[c] = append(x.cols, c), id
	}
	return id
}

// asked is the request that m is, or answers.
func (x *traffic) asked(id msgID) msgID {
	m := x.msgs[id]
	return x.msg(message{kind: request, op: m.op, ticket: m.ticket, list: m.list, age: m.age})
}

func (x *space) messages(s state, i, z uint8, to []action) []action {
	id := x.cols[s.cols[z]].links[i]
	l := x.links[id].link
	if s.left.cuts > 0 && !l.cut {
		to = append(to, action{kind: actCut, claim: i, node: z})
	}
	if l.full {
		to = append(to, action{kind: actRoom, claim: i, node: z})
	} else if s.left.stops > 0 && !l.cut && !x.claims[s.claims[i]].final {
		to = append(to, action{kind: actFull, claim: i, node: z})
	}
	if s.left.drops > 0 && !l.cut && !x.claims[s.claims[i]].final {
		to = append(to, action{kind: actDrop, claim: i, node: z})
	}
	if id == 0 {
		return to
	}
	if l.requests[0] != 0 {
		to = append(to, action{kind: actArrive, claim: i, node: z})
		if s.left.repeats > 0 {
			to = append(to, action{kind: actArriveTwice, claim: i, node: z})
		}
	}
	if l.answers[0] != 0 {
		to = append(to, action{kind: actAnswer, claim: i, node: z})
	}
	each := func(kind actionKind, queue []msgID) {
		for k, m := range queue {
			if m != 0 {
				to = append(to, action{kind: kind, claim: i, node: z, index: uint8(k)})
			}
		}
	}
	each(actPush, l.pushes[:])
	each(actLate, l.late[:])
	if s.left.fails > 0 {
		each(actFailRequest, l.requests[:])
		each(actFailAnswer, l.answers[:])
	}
	return to
}

// drop loses the connection of a claim to a node. What was sent on it may still
// arrive, but no answer to it. Then a new connection is ready for requests.
func (x *space) drop(s *state, i, z uint8) (wrong string) {
	s.left.drops--
	l := x.linkOf(s, i, z)
	lost := slices.Concat(l.requests[:], l.answers[:])
	for _, m := range l.requests {
		if m != 0 {
			put(l.late[:], m)
		}
	}
	l.requests, l.answers = link{}.requests, link{}.answers
	x.setLink(s, i, z, l)
	for _, m := range lost {
		if m != 0 && wrong == "" && !x.claims[s.claims[i]].final {
			wrong = x.happen(s, i, claimEvent{kind: evFail, node: z, msg: x.asked(m)})
		}
	}
	if wrong == "" && !x.claims[s.claims[i]].final {
		wrong = x.happen(s, i, claimEvent{kind: evUp, node: z})
	}
	return wrong
}
