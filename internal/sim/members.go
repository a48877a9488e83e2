package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// In the worlds of some aims a process counts on the set that its nodes have
// recorded, with the code that runs in production (protocol.Membership and
// protocol.Recording). This file does what core/members.go does.

// address is how a process names a node.
func (n *node) address() string { return "n" + n.run() }

// assemble has each process look at the sets of its nodes. If recorded, the
// nodes are a set already.
func (w *world) assemble(recorded bool) {
	if recorded {
		nodes := w.nodes
		if w.members > 0 {
			nodes = nodes[:w.members]
		}
		for _, n := range w.nodes[len(nodes):] { // they are new
			n.model.Forget()
			n.names = map[string]bool{}
		}
		c := w.configuration(nodes, "10000000000")
		if w.members > 0 {
			w.decided = map[uint64]*protocol.Configuration{1: c}
		}
		w.belong(c, nodes)
	}
	for _, p := range w.procs {
		p.join()
	}
}

// belong has some members of a set have it recorded.
func (w *world) belong(c *protocol.Configuration, members []*node) {
	for _, n := range members {
		for _, kind := range []protocol.RecordKind{protocol.SetAccept, protocol.SetCommit} {
			n.model.Step(n.millis(w.now), protocol.RecordStep{Kind: kind, Ballot: "0", Identity: c.Members[c.Place(n.address())].Identity, Config: c}, n.incarnation())
		}
	}
}

// join has the process look at the sets of the nodes that its addresses reach.
func (p *proc) join() {
	var addrs []string
	for _, l := range p.links {
		addrs = append(addrs, l.node.address())
	}
	p.regaining = false
	listed := len(addrs)
	if p.w.members > 0 {
		listed = p.w.members
	}
	p.members = protocol.NewMembership(addrs[:listed], p.w.rules)
	p.members.Exchanges = true
	for _, l := range p.links[:listed] {
		l.absent = false
	}
	for i, a := range addrs[listed:] {
		p.members.Know(a)
		if l := p.links[listed+i]; !l.absent {
			l.snap()
			l.absent = true
		}
	}
	p.grouped = nil
	p.client.Regroup(p.now(), p.members.Group())
	for _, l := range p.links {
		if l.up && !l.meet() {
			l.snap()
		}
	}
}

// configuration is a set of some nodes.
func (w *world) configuration(nodes []*node, chance string) *protocol.Configuration {
	c := &protocol.Configuration{Stamp: protocol.Stamp("1.00000000" + chance), Guard: w.guard, Retention: w.retention}
	for _, n := range nodes {
		c.Members = append(c.Members, protocol.Member{Identity: chance[:4] + n.run(), Addr: n.address()})
	}
	return c
}

// meet finds out of which set the node is that a connection has reached. It
// reports whether the connection may be used.
func (l *link) meet() bool {
	p := l.proc
	if p.members == nil {
		return true
	}
	v := p.members.Met(l.idx, l.node.run(), l.node.keeps())
	p.regroup()
	p.regains()
	if p.outOfSet() {
		for _, t := range p.parts {
			t.release() // its caller gets an error
		}
	}
	if v.Fault != protocol.SetFits {
		p.w.log("link %s-%s: %v", p.name, l.node.address(), v)
	}
	return v.Fault == protocol.SetFits
}

// same has Membership hear that the link reaches the server of another one.
func (l *link) same(other int) {
	if l.proc.members != nil {
		l.proc.members.Same(l.idx, other, l.node.run())
		l.proc.regroup()
	}
}

// regains has the process give the set back to nodes that lost their data, if
// protocol.Membership says so. Another process may do so as well, and an answer
// may be lost: it looks again after a while.
func (p *proc) regains() {
	w := p.w
	if p.regaining || !p.members.Regains() || w.draining && w.idle() {
		return
	}
	p.regaining = true
	p.later(w.around(w.nodeTimeout), func() {
		if r := p.members.Regain(p.ballot()); r != nil {
			p.recordSteps(r, 0)
		}
		p.later(w.nodeTimeout, func() {
			p.regaining = false
			p.regains()
		})
	})
}

// chance is a random text that no other process has.
func (p *proc) chance() string {
	w := p.w
	return fmt.Sprintf("%03x%d%07x", int64(w.now)/int64(time.Millisecond)&0xfff, p.index, w.rng.Uint32N(1<<28))
}

// ballot is one of now.
func (p *proc) ballot() protocol.Ballot {
	return protocol.Ballot(fmt.Sprintf("%08x", int64(p.w.now)/int64(time.Millisecond)) + p.chance())
}

// regroupLater has what a connection's beginning or end leads to be done.
func (p *proc) regroupLater() {
	if p.members != nil && len(p.members.Out) > 0 {
		p.later(1, p.regroup)
	}
}

// regroup does what protocol.Membership says.
func (p *proc) regroup() {
	w := p.w
	todo := p.members.Out
	p.members.Out = nil
	outside, others, doubts := p.members.Outside(), p.members.Others(), p.members.Doubts()
	for _, t := range p.parts {
		if a := t.att; a != nil && !a.Phase().Final() {
			a.before()
			a.Exclude(p.local(w.now), outside|doubts, others)
			a.Exclude(p.local(w.now), outside, 0)
			a.after()
		}
	}
	for _, i := range append([]*registerOp(nil), p.registerOps...) {
		i.Exclude(p.now(), outside|doubts, others)
		i.Exclude(p.now(), outside, 0)
		i.after()
	}
	p.recount()
	for _, a := range todo {
		if a.Node >= len(p.links) {
			continue
		}
		l := p.links[a.Node]
		switch {
		case a.Reconnect:
			p.later(1, l.snap)
			switch {
			case w.wire == nil:
			case w.members > 0: // a trace that exchanges nodes has no command for it
				p.later(2, l.connect)
			default:
				w.say("%s connects to node %d again", p.label, a.Node+1)
			}
			continue
		case a.Cease, a.Begin: // the state of now decides, as in the runtime
			if l.absent = !p.members.Wants(a.Node); l.absent {
				p.later(1, l.snap)
			} else if a.Begin {
				p.later(1, l.connect)
			}
			continue
		case a.Ask > 0:
			l.transfer(&message{about: theSet, link: l, req: protocol.Request{Node: l.idx, Sent: p.now()}, try: a.Ask})
			continue
		}
		n, s := l.node, a.RecordStep
		if s.Kind == protocol.SetLife {
			s.Life = p.chance()
		}
		move := func() {
			if n.down {
				return
			}
			if has := n.step(s); s.Kind == protocol.SetLife {
				p.later(n.delay(), func() {
					p.members.Kept(l.idx, has)
					p.regroup()
				})
			}
		}
		if w.wire == nil || !w.wire.keeps(event{kind: evMove, fn: move, m: &message{about: moves, link: l}}) {
			w.at(n.delay(), move)
		}
	}
}

// keeps is what the node says of its set. A client reads it from a text.
func (n *node) keeps() protocol.NodeSet {
	has, ok := protocol.ParseNodeSet(n.model.SetText())
	if !ok {
		n.w.fail("set", "node %s keeps %q", n.address(), n.model.SetText())
	}
	return has
}

// step carries out a step of the set's register.
func (n *node) step(s protocol.RecordStep) protocol.NodeSet {
	w := n.w
	if s.Kind == protocol.SetRestore && s.Seen == n.model.SetText() {
		n.mark()
	}
	was := n.model.Set()
	n.model.Step(n.millis(w.now), s, n.incarnation())
	has := n.keeps()
	if has.Regains && !was.Regains { // it begins another incarnation when the set is recorded
		n.lives++
		n.unmarked, n.jumped, n.replica, n.original = false, false, false, false
		w.ledger.lost(w)
	}
	w.log("node %s: %v %s: %v", n.address(), s.Kind, s.Ballot, has.String())
	return has
}

// refused is a request that a node does not serve because of its set.
func (l *link) refused() {
	if l.proc.members != nil {
		l.proc.members.Refused(l.idx)
		l.proc.regroup()
	}
}

// outOfSet: its list is another one than its nodes'.
func (p *proc) outOfSet() bool {
	return p.members != nil && p.members.Wrong().Fault != protocol.SetFits
}

// stamp is what the requests of the process name.
func (p *proc) stamp() protocol.Stamp {
	if p.members == nil {
		return ""
	}
	return p.members.Stamp()
}

// recordSet has the process record the set of its addresses, and try again
// while others do so, too.
func (p *proc) recordSet(tries int) {
	w := p.w
	var nodes []*node
	for _, l := range p.links {
		nodes = append(nodes, l.node)
	}
	chance := p.chance()
	r := protocol.NewRecording(w.configuration(nodes, chance), p.ballot(), w.rules)
	p.recordSteps(r, tries)
}

// recordSteps sends what a Recording wants to be asked. An answer that is lost
// ends it.
func (p *proc) recordSteps(r *protocol.Recording, tries int) {
	w := p.w
	todo := r.Out
	r.Out = nil
	for _, s := range todo {
		n := p.links[s.Node].node
		w.at(w.around(8*w.delay), func() {
			if n.down {
				return
			}
			has := n.step(s)
			p.later(w.around(8*w.delay), func() {
				was := r.Outcome
				if r.Answer(s, has); was == protocol.RecordGoesOn {
					p.recordStands(r, tries)
				}
			})
		})
	}
}

// recordStands does what follows from an answer.
func (p *proc) recordStands(r *protocol.Recording, tries int) {
	w := p.w
	switch r.Outcome {
	case protocol.RecordDone, protocol.RecordAlready:
		w.log("process %s: the set is recorded: %v", p.name, r.Config)
		if !r.Regains() {
			p.members.Recorded(r)
			break
		}
		p.members.Rejudge()
		p.regroup()
		for _, l := range p.links {
			p.later(w.around(8*w.delay), l.connect) // meets it again
		}
	case protocol.RecordSuperseded:
		if tries > 0 {
			p.later(w.around(w.nodeTimeout), func() { p.recordSet(tries - 1) })
		}
		return
	}
	p.recordSteps(r, tries)
}
