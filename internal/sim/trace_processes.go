package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file has the commands about processes: their clocks, stops and lives.

// process LABEL [wall DURATION] [rate FACTOR] [settings 1/N]
func (p *player) process(a *args) error {
	q := p.on.process(a.next())
	for len(a.words) > 0 && a.err == nil {
		switch a.next() {
		case "wall":
			q.off = a.duration()
			q.adjust()
		case "rate":
			_, err := fmt.Sscan(a.next(), &q.rate)
			a.fail(err)
		case "offset":
			_, err := fmt.Sscan(a.next(), &q.clock.offset)
			a.fail(err)
		default:
			return fmt.Errorf("process has no such option")
		}
	}
	if p.x.manual {
		p.on.meet(q)
	}
	return a.err
}

func (p *player) pause(a *args) error { p.on.process(a.next()).pause(); return a.err }

// resume LABEL [timers first]
func (p *player) resume(a *args) error {
	q := p.on.process(a.next())
	q.timersFirst = a.take("timers")
	q.resume()
	return a.err
}

// sleep LABEL DURATION [breaks]; with manual it ends by wake.
func (p *player) sleep(a *args) error {
	q, d := p.on.process(a.next()), time.Duration(0)
	if !p.x.manual {
		d = a.duration()
	}
	q.sleep(d, a.take("breaks"))
	return a.err
}

func (p *player) kill(a *args) error { p.on.process(a.next()).crash(); return a.err }

func (p *player) start(a *args) error { p.on.process(a.next()).restart(); return a.err }

// ask LINK: the process asks for the node's time.
func (p *player) ask(a *args) error {
	l, err := p.link(a)
	if err == nil {
		l.askTime()
	}
	return err
}

// spare LABEL: the process finds out whether one more node may be restarted.
func (p *player) spare(a *args) error {
	label := a.next()
	p.on.process(label).survey(func(may bool) {
		p.x.say("%s: one more node may be restarted: %t", label, may)
	})
	return a.err
}

// holder NODES: what an onlooker makes of the answers of these nodes.
func (p *player) whoHolds(a *args) error {
	heads := make([]lease.Head, len(p.w.nodes))
	err := p.onNodes(a, func(n *node) { heads[n.idx] = n.head() })
	switch f := lease.FindHolder(heads, protocol.Quorums{}, p.w.rules); f.Kind {
	case lease.HeldByClaim:
		p.x.say("an onlooker finds a holder, at node %d", f.Node+1)
	case lease.HeldByForeign:
		p.x.say("an onlooker finds another Redlock client")
	case lease.HeldUnknown:
		p.x.say("an onlooker cannot find out the holder")
	default:
		p.x.say("an onlooker finds the name free")
	}
	return err
}

// head is what a node shows an onlooker.
func (n *node) head() (h lease.Head) {
	now := n.millis(n.w.now)
	h.Known = n.model.Recovering(now) == 0
	for _, c := range n.model.Claims(now) {
		if c.Voted {
			h.Voted = append(h.Voted, string(c.ID[:]))
		}
	}
	if n.model.Plain(now) == "rival" {
		h.Foreign = time.Second
	}
	return h
}

func (p *player) wake(a *args) error { p.on.process(a.next()).wake(); return a.err }
