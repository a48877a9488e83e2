//go:build search

package exhaustive

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

func name(claim int) string { return string(rune('A' + claim)) }

// path tells in words how to get to states[at], and on to what is wrong.
// Nodes keep their names on the way, unlike in the states that were searched.
func (x *search) path(at int, wrong string) []string {
	var way []state
	for i := at; i != 0; i = int(x.parents[i]) {
		way = append(way, x.states[i])
	}
	slices.Reverse(way)
	t := teller{space: x.space}
	s := x.states[0]
	for _, to := range way {
		s = t.step(s, func(next state, _ string) bool { return x.canonical(next) == to })
	}
	if wrong != "" {
		t.step(s, func(_ state, w string) bool { return w == wrong })
		t.lines = append(t.lines, wrong)
	}
	return t.flush()
}

type teller struct {
	*space
	lines  []string
	passed int
}

func (t *teller) flush() []string {
	if t.passed > 0 {
		t.lines = append(t.lines, fmt.Sprintf("%d units of time pass", t.passed))
	}
	t.passed = 0
	return t.lines
}

// step takes the first action that leads where the caller wants, and tells it.
func (t *teller) step(s state, want func(state, string) bool) state {
	for _, a := range t.actions(s, nil) {
		if next, wrong := t.apply(s, a); want(next, wrong) {
			t.tell(s, a, next)
			return next
		}
	}
	panic("exhaustive: no way from a state to its successor")
}

func (t *teller) tell(s state, a action, next state) {
	if a.kind == actTime {
		t.passed++
	} else {
		t.flush()
		t.lines = append(t.lines, t.words(s, a))
	}
	for i := range t.cfg.Claims {
		was, is := &t.claims[s.claims[i]], &t.claims[next.claims[i]]
		phase := ""
		switch {
		case is.valid && !was.valid:
			phase = fmt.Sprintf("%s holds, token %d", name(i), is.ticket)
		case was.valid && !is.valid && !is.final:
			phase = name(i) + "'s hold has run out"
		case is.final && !was.final && a.kind != actLeave:
			phase = fmt.Sprintf("%s's attempt ends", name(i))
		case s.claims[i] != 0 && is.ticket != was.ticket && !is.final:
			phase = fmt.Sprintf("%s raises its ticket to %d", name(i), is.ticket)
		}
		if phase != "" {
			t.flush()
			t.lines[len(t.lines)-1] += " => " + phase
		}
	}
}

func (t *teller) words(s state, a action) string {
	actor, z := name(int(a.claim)), a.node+1
	l := t.linkOf(&s, a.claim, a.node)
	switch a.kind {
	case actStart:
		return fmt.Sprintf("%s starts with T0 = %d", actor, a.ticket)
	case actArrive:
		return fmt.Sprintf("node %d takes %s", z, t.request(s, a, l.requests[0]))
	case actArriveTwice:
		return fmt.Sprintf("node %d takes %s; it will come again", z, t.request(s, a, l.requests[0]))
	case actAnswer:
		return fmt.Sprintf("%s hears node %d: %s", actor, z, t.said(l.answers[0]))
	case actPush:
		return fmt.Sprintf("%s hears node %d's push: admissible at %d", actor, z, t.msgs[l.pushes[a.index]].ticket)
	case actLate:
		if m := l.late[a.index]; t.msgs[m].kind == answer {
			return fmt.Sprintf("%s hears node %d, late: %s", actor, z, t.said(m))
		}
		return fmt.Sprintf("node %d takes, late, %s", z, t.request(s, a, l.late[a.index]))
	case actFailRequest:
		return fmt.Sprintf("%s gives up %s to node %d", actor, t.msgs[l.requests[a.index]].op, z)
	case actFailAnswer:
		return fmt.Sprintf("%s gives up waiting for node %d's answer to %s", actor, z,
			t.msgs[l.answers[a.index]].op)
	case actCut:
		return fmt.Sprintf("%s and node %d lose each other for good", actor, z)
	case actDrop:
		return fmt.Sprintf("the connection of %s to node %d is lost and comes back", actor, z)
	case actFull:
		return fmt.Sprintf("node %d has no room for %s", z, actor)
	case actRoom:
		return fmt.Sprintf("node %d has room for %s again", z, actor)
	case actLeave:
		return actor + " leaves"
	case actRestart:
		return fmt.Sprintf("node %d restarts without its memory", z)
	case actGain:
		return fmt.Sprintf("node %d's clock gains a unit", z)
	case actPause:
		return fmt.Sprintf("a unit of time passes; %s's process does not notice", actor)
	}
	return "?"
}

func (t *teller) request(s state, a action, id msgID) string {
	m := t.msgs[id]
	v := t.visit(nodeEvent{node: t.cols[s.cols[a.node]].node, claim: a.claim, msg: id})
	text := fmt.Sprintf("%s's %s", name(int(a.claim)), m.op)
	if m.op == protocol.OpJoin || m.op == protocol.OpSettle {
		text += fmt.Sprintf("(%d)", m.ticket)
	}
	if m.op != protocol.OpLeave {
		text += " -> " + t.said(v.answer)
	}
	for _, p := range v.pushes {
		text += fmt.Sprintf("; pushes %s", name(int(p.claim)))
	}
	return text
}

func (t *teller) said(id msgID) string {
	m := t.msgs[id]
	if m.status != protocol.OK {
		return m.status.String()
	}
	text := fmt.Sprintf("at %d", m.held)
	if m.vote {
		text += ", vote"
	}
	if m.age > 0 {
		text += fmt.Sprintf(" (asked %d ago)", m.age)
	}
	return text
}
