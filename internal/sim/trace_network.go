package sim

import (
	"fmt"
	"strings"
	"time"
)

// This file has the commands about messages and time.

// node reads a node.
func (x *cast) node(s string) (*node, error) {
	i := 0
	if _, err := fmt.Sscanf(s, "%d", &i); err != nil || i < 1 || i > len(x.w.nodes) {
		return nil, fmt.Errorf("%q is no node", s)
	}
	return x.w.nodes[i-1], nil
}

// onNodes does something to the nodes that a command names.
func (x *cast) onNodes(a *args, do func(n *node)) error {
	for _, i := range a.numbers() {
		n, err := x.node(fmt.Sprint(i))
		if err != nil {
			return err
		}
		do(n)
	}
	return a.err
}

// hold PATTERN: what matches waits from now on.
func (x *cast) hold(a *args) error {
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		x.holds = append(x.holds, q)
	}
	return nil
}

// pass [PATTERN]: what matches waits no more. Without a pattern nothing waits.
func (x *cast) pass(a *args) error {
	if len(a.words) == 0 {
		x.holds = nil
		return nil
	}
	for len(a.words) > 0 {
		q, err := a.pattern()
		if err != nil {
			return err
		}
		kept := x.holds[:0]
		for _, h := range x.holds {
			if !q.covers(h) {
				kept = append(kept, h)
			}
		}
		if len(kept) == len(x.holds) {
			return fmt.Errorf("nothing is held as %v", q)
		}
		x.holds = kept
	}
	return nil
}

// drop PATTERN: what is under way and matches never arrives.
func (x *cast) drop(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := x.find(q)
	for k, i := range at {
		x.flight = append(x.flight[:i-k:i-k], x.flight[i-k+1:]...)
	}
	return err
}

// repeat PATTERN: a request that is under way arrives a second time, later.
func (x *cast) repeat(a *args) error {
	q, err := a.pattern()
	if err != nil {
		return err
	}
	at, err := x.find(q)
	for _, i := range at {
		e := x.flight[i]
		e.kind = evLate
		x.flight = append(x.flight, e)
	}
	return err
}

// underWay, the command flight: what is under way, but for questions about the
// time.
func (x *cast) underWay(*args) error {
	var s []string
	for _, e := range x.flight {
		if n := x.names.of(e); n.op != "time" && n.op != "hello" && n.op != "longest" {
			s = append(s, n.String())
		}
	}
	x.say("under way: %s", strings.Join(s, ", "))
	return nil
}

// advance DURATION: so much time passes.
func (x *cast) advance(a *args) error {
	d := a.duration()
	x.until((x.w.now+moment(500*time.Nanosecond))/1000*1000 + moment(d))
	return a.err
}

// at DURATION: time passes until then.
func (x *cast) at(a *args) error {
	d := a.duration()
	x.until(x.began.add(d))
	return a.err
}
