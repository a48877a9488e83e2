package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// In the worlds of some aims a process finds its nodes as in production: it
// begins with a list, and counts on the set that these nodes have recorded
// (nodeset.Membership, nodeset.Recording). This file does what
// core/members.go does.

// join has the process begin with its list.
func (p *proc) join() {
	p.members = nodeset.NewMembership(addresses(p.list), p.w.rules)
	p.grouped, p.recording = nil, false
	p.begin()
	for _, l := range p.links {
		l.up, l.open, l.no = false, false, -1
		l.gen++
	}
	p.tend()
}

// number is what a connection of the link counts as now: the number of a
// member, or of an address of the list. It is -1 if there is to be none.
func (l *link) number() int {
	m := l.proc.members
	if m == nil {
		return l.idx
	}
	addr := l.node.address()
	if l.at != "" {
		addr = l.at
	}
	if c := m.Config(); c != nil && c.Place(addr) >= 0 {
		return c.Members[c.Place(addr)].Number
	}
	if i := slices.Index(m.List(), addr); i >= 0 && m.Wants(nodeset.Seed+i) {
		return nodeset.Seed + i
	}
	return -1
}

// member reports whether the link stands for a member, of which the Client
// knows.
func (l *link) member() bool { return l.no >= 0 && l.no < nodeset.Seed }

// tend has the connections be those that are to be there. One that is to end,
// and that carries a step, ends a little later.
func (p *proc) tend() {
	for _, l := range p.links {
		no := l.number()
		if no != l.no {
			if !l.ending && slices.ContainsFunc(l.unanswered, func(m *message) bool { return m.about == moves }) {
				l.ending = true
				p.later(2*(p.w.delay+p.w.jitter), p.tend)
				continue
			}
			l.snap()
			l.ending, l.no = false, no
		}
		if no >= 0 {
			l.connect()
		}
	}
}

// meet finds out what the server is that a connection has reached. It reports
// whether it counts as a member.
func (l *link) meet() bool {
	p := l.proc
	if p.members == nil {
		return true
	}
	v := p.members.Met(l.no, l.node.keeps())
	if v.Fault != nodeset.SetFits {
		p.w.log("link %s-%s: %d of %v", p.name, l.node.address(), v.Fault, v.Set)
	}
	p.regroup()
	if p.outOfSet() {
		for _, t := range p.parts {
			t.release() // its caller gets an error
		}
	}
	return v.Fault == nodeset.SetFits
}

// records has the process record a set, or record it again, if
// nodeset.Membership says so. Another process may do so as well, and an answer
// may be lost: it looks again after a while.
func (p *proc) records() {
	w := p.w
	if p.recording || !p.members.Due() || w.over() || w.wire != nil {
		return
	}
	p.recording = true
	p.later(w.around(w.nodeTimeout), func() {
		if r := p.members.Record(p.ballot(), w.settings(), false, p.chance); r != nil {
			p.recordSteps(r)
		}
		p.later(w.around(2*w.nodeTimeout), func() {
			p.recording = false
			p.records()
		})
	})
}

// recordSteps sends what a Recording wants to be asked. An answer that is lost
// ends it.
func (p *proc) recordSteps(r *nodeset.Recording) {
	todo := r.Out
	r.Out = nil
	for _, s := range todo {
		p.link(s.Node).step(s, func(has nodeset.NodeSet) {
			was := r.Outcome
			r.Answer(s, has)
			p.recordSteps(r)
			if r.Outcome == nodeset.RecordDone && was == nodeset.RecordGoesOn {
				p.w.log("process %s: the set is recorded: %v", p.name, r.Config)
				p.members.Recorded(r)
				p.regroup()
			}
		})
	}
}

// chance is a random text that no other process has.
func (p *proc) chance() string {
	w := p.w
	return fmt.Sprintf("%03x%d%07x", int64(w.now)/int64(time.Millisecond)&0xfff, p.index, w.rng.Uint32N(1<<28))
}

// ballot is one of now.
func (p *proc) ballot() nodeset.Ballot {
	return nodeset.Ballot(fmt.Sprintf("%08x", int64(p.w.now)/int64(time.Millisecond)) + p.chance())
}

// regroupLater has what a connection's beginning or end leads to be done.
func (p *proc) regroupLater() {
	if p.members != nil && len(p.members.Out) > 0 {
		p.later(1, p.regroup)
	}
}

// regroup does what nodeset.Membership says.
func (p *proc) regroup() {
	for len(p.members.Out) > 0 {
		todo := p.members.Out
		p.members.Out = nil
		p.recount()
		for _, a := range todo {
			l := p.link(a.Node)
			switch {
			case a.Begin, a.Cease: // the state of now decides, as in the runtime
				p.later(1, p.tend)
			case a.Reconnect:
				p.later(1, l.snap)
				if p.w.wire != nil {
					p.later(time.Millisecond, l.connect)
				}
			case a.Ask > 0:
				l.transfer(&message{about: theSet, link: l, of: p.members.Stamp(), req: protocol.Request{Node: l.no, Sent: p.now()}, try: a.Ask})
			default:
				s := a.RecordStep
				if s.Kind == nodeset.SetLife {
					s.Life = p.chance()
				}
				l.step(s, nil)
			}
		}
	}
	p.recount()
	p.records()
}

// step sends a step of the register of a node's set.
func (l *link) step(s nodeset.RecordStep, then func(has nodeset.NodeSet)) {
	l.transfer(&message{about: moves, link: l, step: s, kept: then, req: protocol.Request{Node: l.no, Sent: l.proc.now()}})
}

// stepped takes what a node keeps after a step.
func (l *link) stepped(m *message) {
	if m.kept != nil {
		m.kept(m.set)
	} else if m.step.Kind == nodeset.SetLife {
		l.proc.members.Kept(l.no, m.set)
		l.proc.regroup()
	}
}

// refused is a request that a node does not serve because of its set.
func (l *link) refused() {
	if l.proc.members != nil {
		l.proc.members.Refused(l.no)
		l.proc.regroup()
	}
}

// outOfSet: its list is another one than its nodes'.
func (p *proc) outOfSet() bool {
	return p.members != nil && p.members.Wrong().Fault != nodeset.SetFits
}

// waits reports whether the process has no nodes yet. The call that it is asked
// by waits for them.
func (p *proc) waits(try bool) bool {
	if p.members == nil || p.members.Config() != nil {
		return false
	}
	if !try {
		p.members.Want()
	}
	p.records()
	return true
}

// stamp is what the requests of the process name.
func (p *proc) stamp() nodeset.Stamp {
	if p.members == nil {
		return ""
	}
	return p.members.Stamp()
}

// recount has the process's claims count on the nodes of its set.
func (p *proc) recount() {
	w, c := p.w, p.members.Config()
	if p.grouped == c {
		return
	}
	p.grouped = c
	w.log("process %s counts on %v", p.name, c)
	if c != nil && w.forgotten[c.Stamp] { // messages of before the loss have brought it back
		delete(w.forgotten, c.Stamp)
		w.decides(c)
	}
	if c != nil && w.decided[c.Stamp] == nil {
		w.fail("set", "process %s counts on %v, which was not decided", p.name, c)
	}
	g := p.members.Group()
	p.carryOut(p.client.Regroup(p.now(), g))
	for _, t := range p.parts {
		if a := t.att; a != nil && !a.Phase().Final() {
			a.before()
			a.Regroup(p.now(), g)
			a.after()
		}
	}
	for _, i := range append([]*registerOp(nil), p.registerOps...) {
		i.Regroup(p.now(), g)
		i.after()
	}
	for _, t := range p.parts {
		if t.waits && c != nil {
			p.later(1, func() { t.acquire(t.try) })
		}
	}
}

// leads has an address of a member lead to another server, for this process.
// The server is reached at its own address, too.
func (p *proc) leads(from, to *node) {
	l := p.to(from)
	l.snap()
	l.at = "nowhere"
	p.links = append(p.links, &link{proc: p, node: to, idx: to.idx, no: -1, at: from.address()})
	p.tend()
}

// address is what a process dials to reach the node.
func (n *node) address() string {
	if n.addr != "" {
		return n.addr
	}
	return fmt.Sprintf("n%d", n.idx)
}

func addresses(nodes []*node) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.address())
	}
	return addrs
}
