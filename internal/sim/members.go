package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// In the worlds of some aims a process finds its nodes as in production: it
// begins with a list, and counts on the set that these nodes have recorded
// (nodeset.Membership, nodeset.Recording). This file does what
// core/members.go does.

// follower is how a process follows the set of its nodes.
type follower struct {
	p          *proc
	members    *nodeset.Membership // nil: its nodes are those of the world, and no set
	list       []*node             // that it begins with
	recording  bool                // see records
	grouped    *nodeset.Configuration
	succession *participant // for the register that decides which configuration follows
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

// settings are those of the set that it counts on, or its own.
func (f *follower) settings() nodeset.Shared {
	if f.members != nil && f.members.Config() != nil {
		c := f.members.Config()
		return nodeset.Shared{Guard: c.Guard(), Retention: c.Retention(), Skew: c.Skew()}
	}
	return f.p.w.settings()
}

// join has the process begin with its list.
func (f *follower) join() {
	f.members = nodeset.NewMembership(addresses(f.list), f.p.w.rules)
	f.grouped, f.recording = nil, false
	f.p.begin()
	for _, l := range f.p.links {
		l.up, l.open, l.no = false, false, -1
		l.gen++
	}
	f.tend()
}

// tend has the connections be those that are to be there. One that is to end,
// and that carries a step, ends a little later.
func (f *follower) tend() {
	p := f.p
	for _, l := range p.links {
		no := l.number()
		if no != l.no {
			if !l.ending && slices.ContainsFunc(l.unanswered, func(m *message) bool { return m.about == moves }) {
				l.ending = true
				p.later(2*(p.w.delay+p.w.jitter), f.tend)
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

// records has the process record a set, or record it again, if
// nodeset.Membership says so. Another process may do so as well, and an answer
// may be lost: it looks again after a while.
func (f *follower) records() {
	p, w := f.p, f.p.w
	if f.recording || !f.members.Due() || w.over() || w.wire != nil {
		return
	}
	f.recording = true
	p.later(w.around(w.nodeTimeout), func() {
		if r := f.members.Record(f.ballot(), w.settings(), false, f.chance); r != nil {
			f.recordSteps(r)
		}
		p.later(w.around(2*w.nodeTimeout), func() {
			f.recording = false
			f.records()
		})
	})
}

// recordSteps sends what a Recording wants to be asked. An answer that is lost
// ends it.
func (f *follower) recordSteps(r *nodeset.Recording) {
	todo := r.Out
	r.Out = nil
	for _, s := range todo {
		f.p.link(s.Node).step(s, func(has nodeset.NodeSet) {
			was := r.Outcome
			r.Answer(s, has)
			f.recordSteps(r)
			if r.Outcome == nodeset.RecordDone && was == nodeset.RecordGoesOn {
				f.p.w.log("process %s: the set is recorded: %v", f.p.name, r.Config)
				f.members.Recorded(r)
				f.regroup()
			}
		})
	}
}

// chance is a random text that no other process has.
func (f *follower) chance() string {
	w := f.p.w
	return fmt.Sprintf("%03x%d%07x", int64(w.now)/int64(time.Millisecond)&0xfff, f.p.index, w.rng.Uint32N(1<<28))
}

// ballot is one of now.
func (f *follower) ballot() nodeset.Ballot {
	return nodeset.Ballot(fmt.Sprintf("%08x", int64(f.p.w.now)/int64(time.Millisecond)) + f.chance())
}

// regroupLater has what a connection's beginning or end leads to be done.
func (f *follower) regroupLater() {
	if f.members != nil && len(f.members.Out) > 0 {
		f.p.later(1, f.regroup)
	}
}

// regroup does what nodeset.Membership says.
func (f *follower) regroup() {
	p := f.p
	for len(f.members.Out) > 0 {
		todo := f.members.Out
		f.members.Out = nil
		f.recount()
		for _, a := range todo {
			l := p.link(a.Node)
			switch {
			case a.Begin, a.Cease: // the state of now decides, as in the runtime
				p.later(1, f.tend)
			case a.Reconnect:
				p.later(1, l.snap)
				if p.w.wire != nil {
					p.later(time.Millisecond, l.connect)
				}
			case a.Ask > 0:
				l.transfer(&message{about: theSet, link: l, of: f.members.Stamp(), req: protocol.Request{Node: l.no, Sent: p.now()}, try: a.Ask})
			default:
				s := a.RecordStep
				if s.Kind == nodeset.SetLife {
					s.Life = f.chance()
				}
				l.step(s, nil)
			}
		}
	}
	f.recount()
	f.records()
}

// outOfSet: its list is another one than its nodes'.
func (f *follower) outOfSet() bool {
	return f.members != nil && f.members.Wrong().Fault != nodeset.SetFits
}

// waits reports whether the process has no nodes yet. The call that it is asked
// by waits for them.
func (f *follower) waits(try bool) bool {
	if f.members == nil || f.members.Config() != nil {
		return false
	}
	if !try {
		f.members.Want()
	}
	f.records()
	return true
}

// stamp is what the requests of the process name.
func (f *follower) stamp() nodeset.Stamp {
	if f.members == nil {
		return ""
	}
	return f.members.Stamp()
}

// recount has the process's claims count on the nodes of its set.
func (f *follower) recount() {
	p, w, c := f.p, f.p.w, f.members.Config()
	if f.grouped == c {
		return
	}
	f.grouped = c
	w.log("process %s counts on %v", p.name, c)
	if c != nil && w.forgotten[c.Stamp] { // messages of before the loss have brought it back
		delete(w.forgotten, c.Stamp)
		w.decides(c)
	}
	if c != nil && w.decided[c.Stamp] == nil {
		w.fail("set", "process %s counts on %v, which was not decided", p.name, c)
	}
	g := f.members.Group()
	p.carryOut(p.client.Regroup(p.now(), g))
	for _, t := range p.parts {
		if a := t.att; a != nil && !a.Phase().Final() {
			a.event(func() { a.Regroup(p.now(), g) })
		}
	}
	p.eachOp(func(i *registerOp) { i.Regroup(p.now(), g) })
	for _, t := range p.parts {
		if t.waits && c != nil {
			p.later(1, func() { t.acquire(t.try) })
		}
	}
}

// leads has an address of a member lead to another server, for this process.
// The server is reached at its own address, too.
func (f *follower) leads(from, to *node) {
	p, l := f.p, f.p.to(from)
	l.snap()
	l.at = "nowhere"
	p.links = append(p.links, &link{proc: p, node: to, idx: to.idx, no: -1, at: from.address()})
	f.tend()
}

// at is when the process counts on a configuration of that stage.
func (f *follower) at(epoch uint64) func() bool {
	return func() bool { return f.members.Config().Stamp.Epoch() >= epoch }
}

// counts is when the process counts on a set, or on none for good.
func (f *follower) counts() func() bool {
	return func() bool { return f.members.Config() != nil }
}

// blocked reports whether nodes that have left and were stopped keep the
// process from each quorum that it knows, or the set that it counts on is known
// to nodes that have left only: all others have lost it, and are another one.
func (f *follower) blocked() bool {
	p := f.p
	if f.members == nil {
		return false
	}
	gone, ahead, c := uint32(0), uint32(0), f.members.Config()
	if c == nil {
		return true
	}
	for _, m := range c.Members {
		l := p.link(m.Number)
		if l.node.gone || l == p.nowhere {
			gone |= 1 << m.Number
		} else if l.node.epoch() > c.Stamp.Epoch() {
			ahead |= 1 << m.Number
		}
	}
	knows := func(n *node) bool { set := n.model.Set(); has := set.Recorded(); return has != nil && has.Kin(c) }
	if c.Origin != p.w.latest().Origin && slices.ContainsFunc(p.w.nodes, knows) {
		return !slices.ContainsFunc(p.w.nodes, func(n *node) bool { return knows(n) && !p.w.retired(n) })
	}
	// It follows only what a majority of those shows that decide what follows.
	return gone != 0 && p.client.Group().Sets.Blocked(gone|ahead) && !protocol.Most(c.Deciders(), ahead)
}

// succeed carries out a Succession, and calls then.
func (f *follower) succeed(s *change.Succession, then func()) {
	p := f.p
	if f.succession == nil {
		f.succession = newParticipant(p, len(p.parts))
		f.succession.value = nil
		p.parts = append(p.parts, f.succession)
	}
	t := f.succession
	if t.run == nil {
		t.register, t.succeeds = &process.Name{Name: s.Register}, s
	}
	t.carryOut(&s.Run, then)
}

// exchange has the process carry out changes, one after the other.
func (f *follower) exchange(goals ...change.Goal) *exchanger {
	p := f.p
	x := &exchanger{p: p, goals: goals, timer: never}
	p.w.exchanging, p.w.exchangers = x, append(p.w.exchangers, x)
	p.later(1, x.begin)
	return x
}
