package world

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

// follower is how a process follows the set of its nodes.
type follower struct {
	p          *Proc
	Members    *nodeset.Membership // nil: its nodes are those of the world, and no set
	List       []*Node             // that it begins with
	Outside    bool                // it reaches the nodes by their second addresses only
	recording  bool                // see records
	grouped    *nodeset.Configuration
	Succession *Participant // for the register that decides which configuration follows
}

// number is what a connection of the link counts as now: the number of a
// member, or of an address of the list. It is -1 if there is to be none.
func (l *Link) number() int {
	m := l.Proc.Follower.Members
	if m == nil {
		return l.Index
	}
	all := l.Node.leadHere(l.Proc.Follower.Outside)
	if l.at != "" {
		all = []string{l.at}
	}
	c := m.Config()
	for _, addr := range all {
		if c != nil && c.Place(addr) >= 0 {
			if k := c.Members[c.Place(addr)].Number; m.Addr(k) == addr {
				return k
			}
		} else if i := slices.Index(m.List(), addr); i >= 0 && m.Wants(nodeset.Seed+i) {
			return nodeset.Seed + i
		}
	}
	return -1
}

// member reports whether the link stands for a member, of which the Client
// knows.
func (l *Link) member() bool { return l.No >= 0 && l.No < nodeset.Seed }

// meet finds out what the server is that a connection has reached. It reports
// whether it counts as a member.
func (l *Link) meet() bool {
	p := l.Proc
	if p.Follower.Members == nil {
		return true
	}
	v := p.Follower.Members.Met(l.No, l.Node.Keeps())
	if v.Fault != nodeset.SetFits {
		p.World.Log("link %s-%s: %d of %v", p.Name, l.Node.Address(), v.Fault, v.Set)
	}
	p.Follower.Regroup()
	if p.Follower.outOfSet() {
		for _, t := range p.Parts {
			t.Release() // its caller gets an error
		}
	}
	return v.Fault == nodeset.SetFits
}

// step sends a step of the register of a node's set. then, if not nil, gets what
// the node keeps, or nil if the connection ends before the answer.
func (l *Link) step(s nodeset.RecordStep, then func(has *nodeset.NodeSet)) {
	l.transfer(&Message{about: moves, Link: l, step: s, kept: then,
		Req: protocol.Request{Node: l.No, Sent: l.Proc.Now()}})
}

// stepped takes what a node keeps after a step.
func (l *Link) stepped(m *Message) {
	if m.kept != nil {
		m.kept(&m.set)
	} else if m.step.Kind == nodeset.SetLife {
		l.Proc.Follower.Members.HandleLife(l.No, m.set)
		l.Proc.Follower.Regroup()
	}
}

// refused is a request that a node does not serve because of its set.
func (l *Link) refused() {
	if l.Proc.Follower.Members != nil {
		l.Proc.Follower.Members.Refused(l.No)
		l.Proc.Follower.Regroup()
	}
}

// settings are those of the set that it counts on, or its own.
func (f *follower) settings() nodeset.Shared {
	if f.Members != nil && f.Members.Config() != nil {
		c := f.Members.Config()
		return nodeset.Shared{Guard: c.Guard(), Retention: c.Retention(), Skew: c.Skew()}
	}
	return f.p.Own
}

// join has the process begin with its list.
func (f *follower) join() {
	list := Addresses(f.List)
	if f.Outside {
		for i, n := range f.List {
			list[i] = n.Second
		}
	}
	f.Members = nodeset.NewMembership(list)
	f.grouped, f.recording = nil, false
	f.p.begin()
	for _, l := range f.p.Links {
		l.Up, l.open, l.No, l.pause = false, false, -1, 0
		l.Gen++
	}
	f.Tend()
	// A service may do without a call for long.
	f.p.Later(2*f.p.World.NodeTimeout, func() { f.Members.Recorder.Want(); f.records() })
}

// Tend has the connections be those that are to be there. One that is to end,
// and that carries a step, ends a little later.
func (f *follower) Tend() {
	p := f.p
	for _, l := range p.Links {
		no := l.number()
		if no != l.No {
			if !l.ending && slices.ContainsFunc(l.unanswered, func(m *Message) bool { return m.about == moves }) {
				l.ending = true
				p.Later(2*(p.World.Delay+p.World.Jitter), f.Tend)
				continue
			}
			l.Snap()
			l.ending, l.No = false, no
		}
		if no >= 0 {
			l.Connect()
		}
	}
}

// records has the process record a set, or record it again, for as long as
// nodeset.Membership says so, as the recorder in internal/peers does.
func (f *follower) records() {
	w := f.p.World
	if f.recording || !f.Members.Recorder.Due() || w.over() || w.Wire != nil {
		return
	}
	f.recording = true
	f.p.run(func(t *task) {
		for pause := time.Duration(0); f.Members.Recorder.Due() && !w.over(); {
			pause = nodeset.RecordPause(pause, w.NodeTimeout)
			random := pause/2 + time.Duration(w.RNG.Int64N(int64(pause/2)))
			if !t.wait(func(done func()) { t.p.Later(random, done) }) {
				return
			}
			r, steps := f.Members.Recorder.Record(f.Ballot, t.p.Own, false, f.Chance)
			for len(steps) > 0 {
				answers := t.askSet(steps)
				if t.gone {
					return
				}
				steps = f.Members.Next(answers)
				f.Regroup()
			}
			if r != nil && r.Outcome == nodeset.RecordDone {
				w.Log("process %s: the set is recorded: %v", t.p.Name, r.Config)
			}
		}
		f.recording = false
	})
}

// askSet has all nodes carry out steps of the registers of their set. An answer
// that is lost is nil.
func (t *task) askSet(steps []nodeset.RecordStep) []*nodeset.NodeSet {
	answers := make([]*nodeset.NodeSet, len(steps))
	t.each(len(steps), func(t *task, k int) {
		t.wait(func(done func()) {
			t.p.Later(10*t.p.World.NodeTimeout, done)
			t.p.Link(steps[k].Node).step(steps[k], func(has *nodeset.NodeSet) {
				answers[k] = has
				done()
			})
		})
	})
	return answers
}

// Chance is a random text that no other process has.
func (f *follower) Chance() string {
	w := f.p.World
	return fmt.Sprintf("%03x%d%07x", int64(w.Now)/int64(time.Millisecond)&0xfff, f.p.Index, w.RNG.Uint32N(1<<28))
}

// Ballot returns one that has the current time and is above the given one.
func (f *follower) Ballot(above nodeset.Ballot) nodeset.Ballot {
	w := f.p.World
	return nodeset.NewBallot(time.UnixMilli(int64(w.Now)/1e6), w.RNG.Uint32(), above)
}

// regroupLater has what a connection's beginning or end leads to be done.
func (f *follower) regroupLater() {
	if f.Members == nil {
		return
	}
	if f.records(); len(f.Members.Out) > 0 {
		f.p.Later(1, f.Regroup)
	}
}

// Regroup does what nodeset.Membership says.
func (f *follower) Regroup() {
	p := f.p
	for len(f.Members.Out) > 0 {
		todo := f.Members.Out
		f.Members.Out = nil
		f.recount()
		for _, a := range todo {
			l := p.Link(a.Node)
			switch {
			case a.Begin, a.Cease: // the state of now decides, as in the runtime
				p.Later(1, f.Tend)
			case a.Reconnect:
				p.Later(1, l.Snap)
				if p.World.Wire != nil {
					p.Later(time.Millisecond, l.Connect)
				}
			case a.Ask > 0:
				l.transfer(&Message{about: theSet, Link: l, of: f.Members.Stamp(),
					Req: protocol.Request{Node: l.No, Sent: p.Now()}, try: a.Ask})
			default:
				s := a.RecordStep
				if s.Kind == nodeset.SetLife {
					s.Life = f.Chance()
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
	return f.Members != nil && f.Members.Wrong().Fault != nodeset.SetFits
}

// waits reports whether the process has no nodes yet. The call that it is asked
// by waits for them.
func (f *follower) waits() bool {
	if f.Members == nil || f.Members.Config() != nil {
		return false
	}
	f.Members.Recorder.Want()
	f.records()
	return true
}

// stamp is what the requests of the process name.
func (f *follower) stamp() nodeset.Stamp {
	if f.Members == nil {
		return ""
	}
	return f.Members.Stamp()
}

// recount has the process's claims count on the nodes of its set.
func (f *follower) recount() {
	p, w, c := f.p, f.p.World, f.Members.Config()
	if f.grouped == c {
		return
	}
	f.grouped = c
	w.Log("process %s counts on %v", p.Name, c)
	if c != nil && w.Decisions.forgotten[c.Stamp] { // messages of before the loss have brought it back
		delete(w.Decisions.forgotten, c.Stamp)
		w.Decisions.decides(c)
	}
	if c != nil && w.Decisions.decided[c.Stamp] == nil {
		w.Fail("set", "process %s counts on %v, which was not decided", p.Name, c)
	}
	g := f.Members.Group()
	p.CarryOut(p.Client.Regroup(p.Now(), g))
	for _, t := range p.Parts {
		if a := t.Att; a != nil && !a.Claim.State.Phase().Final() {
			a.event(func() { a.Claim.Regroup(p.Now(), g) })
		}
	}
	p.RegisterOps.each(func(i *RegisterOp) { i.Op.Regroup(p.Now(), g) })
	for _, t := range p.Parts {
		if t.waits && c != nil {
			p.Later(1, func() { t.Acquire(t.try) })
		}
	}
}

// Leads has an address of a member lead to another server, for this process.
// The server is reached at its own address, too.
func (f *follower) Leads(from, to *Node) {
	p, l := f.p, f.p.To(from)
	l.Snap()
	l.at = "nowhere"
	p.Links = append(p.Links, &Link{Proc: p, Node: to, Index: to.Index, No: -1, at: from.Address()})
	f.Tend()
}

// Counts is when the process counts on a set, or on none permanently.
func (f *follower) Counts() func() bool {
	return func() bool { return f.Members.Config() != nil }
}

// Blocked reports whether nodes that have left and were stopped keep the
// process from each quorum that it knows, or the set that it counts on is known
// to nodes that have left only: all others have lost it, and are another one.
func (f *follower) Blocked() bool {
	if f.Members == nil {
		return false
	}
	gone, ahead, c := uint32(0), uint32(0), f.Members.Config()
	if c == nil {
		return true
	}
	for _, m := range c.Members {
		l := f.p.Link(m.Number)
		if l.Node.Gone || l == f.p.nowhere {
			gone |= 1 << m.Number
		} else if l.Node.epoch() > c.Stamp.Epoch() {
			ahead |= 1 << m.Number
		}
	}
	if know := f.p.World.Decisions.knowing(c); len(know) > 0 && c.Origin != f.p.World.Decisions.Latest().Origin {
		return !slices.ContainsFunc(know, func(n *Node) bool { return !f.p.World.Decisions.Retired(n) })
	}
	// It follows only what a majority of those shows that decide what follows.
	return gone != 0 && f.p.Client.Group().Sets.Blocked(gone|ahead) && !protocol.Most(c.Deciders(), ahead)
}
