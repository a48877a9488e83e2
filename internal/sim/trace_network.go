package sim

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/protocol"
)

// This file has the commands about messages and connections.

// hold PATTERN: what matches waits from now on.
func (p *player) hold(a *args) error {
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		p.x.holds = append(p.x.holds, q)
	}
	return nil
}

// pass [PATTERN]: what matches waits no more. Without a pattern nothing waits.
func (p *player) pass(a *args) error {
	if len(a.words) == 0 {
		p.x.holds = nil
		return nil
	}
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		kept := p.x.holds[:0]
		for _, h := range p.x.holds {
			if !q.covers(h) {
				kept = append(kept, h)
			}
		}
		if len(kept) == len(p.x.holds) {
			return fmt.Errorf("nothing is held as %v", q)
		}
		p.x.holds = kept
	}
	return nil
}

// deliver PATTERN: what is under way and matches arrives now.
func (p *player) deliver(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := p.x.find(q)
	switch {
	case err != nil && p.x.manual && (q.kind == evUp || q.kind == evDown):
		return p.notice(q)
	case err != nil && p.x.manual:
		return nil // with another rule set it may not have been sent
	case err != nil:
		return err
	}
	p.x.sayAnswers = !p.x.manual
	defer func() { p.x.sayAnswers = false }()
	if q.no > 0 || p.x.manual {
		at = at[:1]
	}
	for k, i := range at { // each delivery moves the others up
		p.x.deliver(i - k)
	}
	return nil
}

// drop PATTERN: what is under way and matches never arrives.
func (p *player) drop(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := p.x.find(q)
	for k, i := range at {
		p.x.flight = append(p.x.flight[:i-k:i-k], p.x.flight[i-k+1:]...)
	}
	return err
}

// repeat PATTERN: a request that is under way arrives a second time, later.
func (p *player) repeat(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := p.x.find(q)
	for _, i := range at {
		e := p.x.flight[i]
		e.kind = evLate
		p.x.flight = append(p.x.flight, e)
	}
	return err
}

// flight: what is under way, but for questions about the time.
func (p *player) flight(*args) error {
	var s []string
	for _, e := range p.x.flight {
		if n := p.x.names.of(e); n.op != "time" && n.op != "hello" && n.op != "longest" {
			s = append(s, n.String())
		}
	}
	p.x.say("under way: %s", strings.Join(s, ", "))
	return nil
}

func (p *player) snap(a *args) error {
	l, err := p.link(a)
	if err == nil {
		l.snap()
	}
	return err
}

func (p *player) connect(a *args) error {
	l, err := p.link(a)
	if err == nil {
		if l.connect(); !l.up {
			p.x.say("%s>%d does not connect", l.proc.label, l.idx+1)
		}
	}
	return err
}

// cut LINK requests|answers and heal LINK [broken]: no new connection is had
// meanwhile.
func (p *player) cut(a *args) error {
	l, err := p.link(a)
	if err != nil {
		return err
	}
	which := a.next()
	d, ok := map[string]int{"requests": requests, "answers": answers}[which]
	if !ok {
		return fmt.Errorf("%q is neither requests nor answers", which)
	}
	l.cut(d)
	return a.err
}

func (p *player) heal(a *args) error {
	l, err := p.link(a)
	if err == nil {
		l.heal(a.take("broken"))
	}
	return err
}

// notice tells a process that a connection is up, or down.
func (p *player) notice(q parcel) error {
	n, err := p.node(q.to)
	if err != nil {
		return err
	}
	l := p.on.process(q.from).links[n.idx]
	p.x.handle(event{kind: q.kind, proc: l.proc, gen: l.proc.epoch, m: &message{link: l, gen: l.gen, req: protocol.Request{Node: l.no}}}, p.w.now)
	return nil
}
