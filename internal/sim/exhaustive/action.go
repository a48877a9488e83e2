//go:build search

package exhaustive

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// action is one thing that can happen in a state.
type action struct {
	kind   actionKind
	claim  uint8
	node   uint8
	index  uint8 // of a message in its queue
	ticket protocol.Ticket
}

type actionKind uint8

const (
	actStart       actionKind = iota
	actArrive                 // the next request reaches the node
	actArriveTwice            // and a copy of it will, some time
	actAnswer                 // the next answer reaches the claim
	actPush
	actLate        // a message that was given up arrives after all
	actFailRequest // a request is given up; it becomes late
	actFailAnswer
	actCut     // a claim and a node lose each other for good
	actDrop    // the connection of a claim and a node is lost and comes back
	actFull    // a node has no room for a claim's requests
	actRoom    // and has some again
	actLeave   // release, or cancel
	actRestart // of a node, without its memory
	actGain    // a node's clock jumps
	actTime    // a unit passes
	actPause   // a unit passes, and one claim's process does not notice
)

// actions lists what can happen in s.
func (x *space) actions(s state, to []action) []action {
	to = x.starts(s, to[:0])
	if s.claims[0] == 0 {
		return to // nothing before the first start makes a difference: nodes do nothing unasked
	}
	for i := range uint8(len(x.cfg.Claims)) {
		if s.claims[i] == 0 {
			continue
		}
		c := &x.claims[s.claims[i]]
		if !c.final {
			to = append(to, action{kind: actLeave, claim: i})
			if s.left.pauses > 0 && x.mayWait(s) {
				to = append(to, action{kind: actPause, claim: i})
			}
		}
		for z := range uint8(nodes) {
			to = x.messages(s, i, z, to)
		}
	}
	for z := range uint8(nodes) {
		if s.left.restarts > 0 {
			if _, marked := x.nodes[x.cols[s.cols[z]].node].n.Incarnation(); marked {
				to = append(to, action{kind: actRestart, node: z})
			}
		}
		if s.left.gains > 0 {
			to = append(to, action{kind: actGain, node: z})
		}
	}
	if x.mayWait(s) {
		to = append(to, action{kind: actTime})
	}
	return to
}

// starts: claims start in turn, the first at base. A claim may start below
// another one's T0 only while client clocks can differ by as much.
func (x *space) starts(s state, to []action) []action {
	for i := range x.cfg.Claims {
		if s.claims[i] != 0 {
			continue
		}
	tickets:
		for _, t := range x.cfg.Claims[i].Propose {
			for j := range i {
				if p := &x.claims[s.claims[j]]; t <= max(x.cfg.Claims[j].Propose[0], p.ticket) {
					if x.cfg.Skew != Unbounded && int(s.left.since[j]) > x.cfg.Skew {
						continue tickets
					}
				}
			}
			to = append(to, action{kind: actStart, claim: uint8(i), ticket: t})
		}
		break
	}
	return to
}

// mayWait reports whether time may pass: not while a message is overdue.
func (x *space) mayWait(s state) bool {
	if x.cfg.Delay == Unbounded || s.left.units == 0 {
		return s.left.units > 0
	}
	for _, id := range s.cols {
		for _, l := range x.cols[id].links {
			if l == 0 {
				continue
			}
			for _, queue := range [2][]msgID{x.links[l].requests[:], x.links[l].answers[:]} {
				for _, m := range queue {
					if m != 0 && int(x.msgs[m].age) >= x.cfg.Delay {
						return false
					}
				}
			}
		}
	}
	return true
}

// apply lets a happen in s, and returns what is wrong then.
func (x *space) apply(s state, a action) (state, string) {
	i, z := a.claim, a.node
	var wrong string
	switch a.kind {
	case actStart:
		wrong = x.happen(&s, i, claimEvent{kind: evStart, ticket: a.ticket})
	case actArrive, actArriveTwice:
		l := x.linkOf(&s, i, z)
		m := drop(l.requests[:], 0)
		if a.kind == actArriveTwice {
			s.left.repeats--
			put(l.late[:], m)
		}
		x.setLink(&s, i, z, l)
		x.arrive(&s, i, z, m)
	case actAnswer:
		l := x.linkOf(&s, i, z)
		m := drop(l.answers[:], 0)
		x.setLink(&s, i, z, l)
		wrong = x.happen(&s, i, claimEvent{kind: evAnswer, node: z, msg: m})
	case actPush:
		l := x.linkOf(&s, i, z)
		m := drop(l.pushes[:], int(a.index))
		x.setLink(&s, i, z, l)
		wrong = x.happen(&s, i, claimEvent{kind: evPush, node: z, msg: m})
	case actLate:
		l := x.linkOf(&s, i, z)
		m := drop(l.late[:], int(a.index))
		x.setLink(&s, i, z, l)
		if x.msgs[m].kind == answer {
			wrong = x.happen(&s, i, claimEvent{kind: evAnswer, node: z, msg: m})
		} else {
			x.arrive(&s, i, z, m)
		}
	case actFailRequest, actFailAnswer:
		wrong = x.fail(&s, a)
	case actCut, actDrop, actFull, actRoom:
		wrong = x.connection(&s, a)
	case actLeave:
		wrong = x.happen(&s, i, claimEvent{kind: evLeave})
	case actRestart:
		s.left.restarts--
		c := x.cols[s.cols[z]]
		c.node = x.forgets(c.node)
		s.cols[z] = x.col(c)
	case actGain:
		s.left.gains--
		c := x.cols[s.cols[z]]
		c.node = x.later(c.node)
		s.cols[z] = x.col(c)
	case actTime:
		wrong = x.pass(&s, -1)
	case actPause:
		s.left.pauses--
		wrong = x.pass(&s, int(i))
	}
	if s.left.beats == 0 {
		x.changeAll(&s, hushes)
	}
	return s, wrong
}

// connection changes what a claim and a node can send to each other.
func (x *space) connection(s *state, a action) (wrong string) {
	i, z := a.claim, a.node
	l := x.linkOf(s, i, z)
	switch a.kind {
	case actCut:
		s.left.cuts--
		x.setLink(s, i, z, link{cut: true})
		for _, m := range slices.Concat(l.requests[:], l.answers[:]) {
			if m != 0 && wrong == "" && !x.claims[s.claims[i]].final {
				wrong = x.happen(s, i, claimEvent{kind: evFail, node: z, msg: x.asked(m)})
			}
		}
		if wrong == "" && l.full {
			wrong = x.room(s, i, z) // what has waited fails as well
		}
	case actDrop:
		wrong = x.drop(s, i, z)
	case actFull:
		s.left.stops--
		l.full = true
		x.setLink(s, i, z, l)
	case actRoom:
		l.full = false
		x.setLink(s, i, z, l)
		wrong = x.room(s, i, z)
	}
	return wrong
}

// fail gives a message up: it becomes late, and its claim gets the failure at
// once.
func (x *space) fail(s *state, a action) string {
	s.left.fails--
	l := x.linkOf(s, a.claim, a.node)
	queue := l.requests[:]
	if a.kind == actFailAnswer {
		queue = l.answers[:]
	}
	m := drop(queue, int(a.index))
	if x.claims[s.claims[a.claim]].final {
		late := x.msgs[m]
		late.age = 0
		put(l.late[:], x.msg(late))
		x.setLink(s, a.claim, a.node, l)
		return ""
	}
	put(l.late[:], m)
	x.setLink(s, a.claim, a.node, l)
	return x.happen(s, a.claim, claimEvent{kind: evFail, node: a.node, msg: x.asked(m)})
}

// room lets what waits for a node leave. An attempt of which nothing was sent
// begins now, and by its clock it begins after all others.
func (x *space) room(s *state, i, z uint8) string {
	if x.claims[s.claims[i]].a == nil {
		return ""
	}
	var top protocol.Ticket
	for j, id := range s.claims {
		if id != 0 {
			top = max(top, x.claims[id].ticket, x.cfg.Claims[j].Propose[0])
		}
	}
	return x.happen(s, i, claimEvent{kind: evRoom, node: z, ticket: x.cfg.id(int(i)).Next(top)})
}

// pass lets a unit pass everywhere; the process of claim asleep does not
// notice.
func (x *space) pass(s *state, asleep int) string {
	spend(&s.left.units)
	for z := range s.cols {
		c := x.cols[s.cols[z]]
		c.node = x.later(c.node)
		for i := range c.links {
			if x.claims[s.claims[i]].final {
				c.links[i] = x.become(c.links[i], agesAlone)
			} else {
				c.links[i] = x.become(c.links[i], ages)
			}
		}
		s.cols[z] = x.col(c)
	}
	for i := range x.cfg.Claims {
		if s.left.since[i] <= uint8(max(x.cfg.Skew, 0)) && s.claims[len(x.cfg.Claims)-1] == 0 && s.claims[i] != 0 {
			s.left.since[i]++
		}
	}
	wrong := ""
	for i := range x.cfg.Claims {
		if s.claims[i] == 0 || x.claims[s.claims[i]].a == nil {
			continue
		}
		e := claimEvent{kind: evTick}
		if i == asleep {
			e.kind = evPause
		}
		if w := x.happen(s, uint8(i), e); w != "" {
			wrong = w
		}
	}
	return wrong
}
