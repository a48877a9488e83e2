package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file has the commands about nodes: their data, clocks and redlock keys.

func (p *player) crash(a *args) error { return p.onNodes(a, (*node).crash) }

// restart NODES [amnesia|old]: a node that runs crashes first.
func (p *player) restart(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	amnesia, old := a.take("amnesia"), a.take("old")
	for _, n := range ns {
		if !n.down {
			n.crash()
		}
		switch {
		case amnesia:
			n.forget()
		case old:
			n.revert()
		}
		n.restart()
	}
	return nil
}

func (p *player) save(a *args) error { return p.onNodes(a, (*node).save) }

func (p *player) stop(a *args) error { return p.onNodes(a, (*node).pause) }

func (p *player) resumeNode(a *args) error { return p.onNodes(a, (*node).resume) }

// refuse NODES [no more]
func (p *player) refuse(a *args) error {
	var ns []*node
	err := p.onNodes(a, func(n *node) { ns = append(ns, n) })
	ends := a.take("no") && a.take("more")
	for _, n := range ns {
		n.refuse = !ends
	}
	return err
}

// clock NODES [by DURATION] [rate FACTOR]: the clock is set by so much, or runs
// faster.
func (p *player) clock(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	by, rate, offset := time.Duration(0), 0.0, int64(0)
	for len(a.words) > 0 && a.err == nil {
		switch a.next() {
		case "by":
			by = a.duration()
		case "rate":
			_, err := fmt.Sscan(a.next(), &rate)
			a.fail(err)
		case "offset":
			_, err := fmt.Sscan(a.next(), &offset)
			a.fail(err)
		default:
			return fmt.Errorf("clock has no such option")
		}
	}
	for _, n := range ns {
		if by != 0 {
			n.jump(by)
		}
		if rate != 0 {
			n.rate = rate
		}
		if offset != 0 {
			n.clock.offset = offset
		}
	}
	return a.err
}

// key NODES [DURATION] [as VALUE]: another Redlock client sets the name's
// redlock key there. With a majority of the nodes it holds until the keys end;
// with manual, rival says so.
func (p *player) key(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	lease, value := time.Duration(0), "rival"
	if len(a.words) > 0 && a.words[0] != "as" {
		lease = a.duration()
	}
	if a.take("as") {
		value = a.next()
	}
	r := p.theRival()
	if r.lease != lease {
		r.lease, r.set, r.began = lease, 0, r.local(p.w.now)
	}
	for _, n := range ns {
		set := n.setPlain(value, lease)
		if p.x.say("node %d gives the rival the key: %t", n.idx+1, set); set {
			r.set++
		}
	}
	if r.set > len(p.w.nodes)/2 && lease > 0 && !r.valid() && !p.x.manual {
		r.holds(r.end(r.began))
		p.x.say("the rival holds until %s", clockTime(r.clock, r.until))
	}
	return a.err
}

func (p *player) theRival() *rival {
	if p.w.rival == nil {
		p.w.rival = &rival{w: p.w, clock: clock{offset: 1, rate: 1}}
	}
	return p.w.rival
}

// rival until DURATION: the rival takes itself for the holder until then.
func (p *player) rival(a *args) error {
	if !a.take("until") {
		return fmt.Errorf("rival until DURATION")
	}
	r, end := p.theRival(), p.began.add(a.duration())
	if end > p.w.now && r.set <= len(p.w.nodes)/2 {
		return fmt.Errorf("only %d nodes have given the rival their keys", r.set)
	}
	if r.until = r.local(end); end <= p.w.now {
		r.set = 0
	}
	return a.err
}

// unkey NODES [VALUE]: the rival deletes its keys there.
func (p *player) unkey(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	value := "rival"
	if len(a.words) > 0 {
		value = a.next()
	}
	if r := p.theRival(); !p.x.manual {
		r.until, r.set = 0, 0
	}
	for _, n := range ns {
		n.delPlain(value)
	}
	return a.err
}

// forget NODES and revert NODES: while a node is down it loses its data, or all
// since save.
func (p *player) forget(a *args) error { return p.onNodes(a, (*node).forget) }

func (p *player) revert(a *args) error { return p.onNodes(a, (*node).revert) }

// replica NODE of NODE: it was the other one's replica for a moment, and has
// its data.
func (p *player) replica(a *args) error {
	n, err := p.node(a.next())
	if err != nil {
		return err
	}
	a.take("of")
	o, err := p.node(a.next())
	if err == nil {
		n.copy(o)
	}
	return err
}

func (p *player) caughtUp(a *args) error {
	return p.onNodes(a, func(n *node) {
		inc, _ := n.model.Incarnation()
		for _, o := range p.w.nodes { // what the repair brought beside the record
			if !o.down && o != n {
				n.model.Resize(o.model.Limit())
			}
		}
		n.complete(inc)
	})
}

// repair NODE by LABEL
func (p *player) repair(a *args) error {
	n, err := p.node(a.next())
	if err != nil || !a.take("by") {
		return fmt.Errorf("repair NODE by LABEL")
	}
	label := a.next()
	return p.on.repair(label, n, a.take("told"))
}

// subscribe LINK: the connection for pushes is ready, and some may be lost.
func (p *player) subscribe(a *args) error {
	l, err := p.link(a)
	if err == nil {
		l.proc.carryOut(l.proc.client.Subscribed(l.proc.now(), l.no))
	}
	return err
}

// lack NODES: they never had the names of the option names.
func (p *player) lack(a *args) error {
	return p.onNodes(a, func(n *node) { clear(n.names) })
}

// undecided N [no more]: the run of the Nth of these names is under way.
func (p *player) undecided(a *args) error {
	name := nameOf(a.number())
	p.w.held[name] = !(a.take("no") && a.take("more"))
	return a.err
}

// forge NODES [by DURATION]: a record is there that is ahead by so much, or of
// the far future.
func (p *player) forge(a *args) error {
	var ns []*node
	if err := p.onNodes(a, func(n *node) { ns = append(ns, n) }); err != nil {
		return err
	}
	ahead := time.Duration(0)
	if a.take("by") {
		ahead = a.duration()
	}
	for _, n := range ns {
		t := protocol.MaxTicket - 1
		if ahead > 0 {
			t = protocol.Ticket(n.millis(p.w.now)*1000 + ahead.Microseconds())
		}
		v := protocol.Version{Ticket: t, Seq: 1}
		n.model.Forge(protocol.Stored{Version: v, Value: []byte("forged")}, v)
	}
	return a.err
}
