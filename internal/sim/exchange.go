package sim

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file exchanges the nodes of a set, as an operator does, with the code that runs in production
// (protocol.Exchange, protocol.Membership). The register that decides which configuration follows is not simulated
// beside that: a process decides where it reaches as many nodes as it would need.

// exchanger is a process that exchanges nodes.
type exchanger struct {
	p      *proc
	e      protocol.Exchange
	config *protocol.Configuration // that e knows
	goals  []protocol.Change       // one after the other
	undo   bool                    // it gives the exchange up
	over   func()
}

// exchange has the process carry out changes, one after the other.
func (p *proc) exchange(goals ...protocol.Change) *exchanger {
	w := p.w
	x := &exchanger{p: p, goals: goals, e: protocol.Exchange{Guard: w.guard + w.guard/50 + 2*w.skew, Rules: w.rules}}
	w.exchanging = x
	w.at(1, x.loop)
	return x
}

// loop looks at the nodes now and then, until all is done. It goes on in the next life of the process.
func (x *exchanger) loop() {
	p, w := x.p, x.p.w
	if len(x.goals) > 0 && p.alive && !p.paused && p.members.Config() != nil {
		x.look()
	}
	if len(x.goals) > 0 && w.now < w.limit {
		w.at(w.around(w.nodeTimeout/2), x.loop)
	} else if x.over != nil {
		x.over()
	}
}

// look finds out how far the exchange is, and goes on with it.
func (x *exchanger) look() {
	p, w := x.p, x.p.w
	c := p.members.Config()
	if next := w.decided[c.Stamp.Epoch()+1]; next != nil && p.decides(c) {
		p.members.Decide(next)
		p.regroup()
		return
	}
	if x.config != c {
		x.config = c
		x.e.Decided(p.now(), c)
	}
	for k := range c.Members {
		n := p.memberNode(k)
		t := &repairTask{step: protocol.RepairStep{Kind: protocol.RepairLook, Node: n.idx, Target: n.idx}, stamp: c.Stamp}
		t.then = func(res protocol.RepairResult) {
			if x.config == c && res.Err == nil && t.served {
				x.e.Moved(p.now(), k)
				x.e.Looked(k, res.Wait == 0, res.CaughtUp || !p.mends(n))
			}
		}
		p.ask(t, n.idx, p.nodeTimeout())
	}
	b := protocol.Ballot(protocol.NewBallot(time.UnixMilli(int64(w.now)/1e6), w.rng.Uint32(), ""))
	switch {
	case c.Stage == protocol.Stable && x.e.Over() && c.Fits(x.goals[0]):
		p.follow(c, c.Begin(x.goals[0], b))
	case c.Stage == protocol.Stable && x.e.Over(): // done, by this process or by another one
		x.goals = x.goals[1:]
	case c.Stage != protocol.Stable && x.undo:
		if p.follow(c, c.Undo(b)) {
			x.goals = x.goals[1:]
		}
	case c.Stage == protocol.Learning && x.e.Next(p.now()):
		p.follow(c, c.Join(b))
	case c.Stage == protocol.Jointly && x.e.Next(p.now()):
		p.follow(c, c.Finish(b))
	}
}

// epoch is that of the configuration that the node serves.
func (n *node) epoch() uint64 {
	set := n.model.Set()
	return set.Stamp().Epoch()
}

// memberNode returns the node that a member is.
func (p *proc) memberNode(k int) *node {
	for i, l := range p.links {
		if p.members.Member(i) == k {
			return l.node
		}
	}
	panic("a member is no node")
}

// propose has the register decide which configuration follows c, if enough nodes can be reached.
func (p *proc) follow(c, next *protocol.Configuration) bool {
	w := p.w
	if !p.decides(c) {
		return false
	}
	if w.decided == nil {
		w.decided = map[uint64]*protocol.Configuration{}
	}
	epoch := next.Stamp.Epoch()
	if w.decided[epoch] == nil {
		w.decided[epoch] = next
		w.log("process %s decides: %v", p.name, next)
	}
	p.members.Decide(w.decided[epoch])
	p.regroup()
	return true
}

// decides: the process reaches a majority of the nodes that decide what follows c, and these serve c.
func (p *proc) decides(c *protocol.Configuration) bool {
	need, have := 0, 0
	for k, m := range c.Members {
		if m.Role == protocol.Enters {
			continue
		}
		need++
		if n := p.memberNode(k); p.reaches(n) && n.epoch() >= c.Stamp.Epoch() {
			have++
		}
	}
	return 2*have > need
}

// recount has the process's claims count on the nodes of its set.
func (p *proc) recount() {
	if p.w.members == 0 || p.grouped == p.members.Config() {
		return
	}
	p.grouped = p.members.Config()
	g := p.members.Group()
	for _, l := range p.links {
		l.absent = l.idx >= g.Nodes || g.Absent&(1<<l.idx) != 0
	}
	p.w.log("process %s counts on %v", p.name, p.grouped)
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
}

// sets is which nodes make a quorum by what was decided last.
func (w *world) sets() protocol.Quorums {
	var last *protocol.Configuration
	for _, c := range w.decided {
		if last == nil || c.Stamp.Epoch() > last.Stamp.Epoch() {
			last = c
		}
	}
	switch {
	case last != nil:
		return last.Quorums(func(k int) int {
			return slices.IndexFunc(w.nodes, func(n *node) bool { return n.address() == last.Members[k].Addr })
		}, protocol.Rules{})
	case w.members > 0:
		return protocol.Majority(w.members)
	}
	return protocol.Majority(len(w.nodes))
}

// recordAgain is what an operator does whose set has no member left that knows it.
func (w *world) recordAgain() {
	var last *protocol.Configuration
	for _, c := range w.decided {
		if last == nil || c.Stamp.Epoch() > last.Stamp.Epoch() {
			last = c
		}
	}
	var lost []*node
	for _, n := range w.nodes {
		if last == nil || last.Place(n.address()) < 0 || last.Members[last.Place(n.address())].Role == protocol.Enters {
			continue
		}
		if n.epoch() > 0 {
			return
		}
		lost = append(lost, n)
	}
	for _, n := range lost {
		n.step(protocol.RecordStep{Kind: protocol.SetRestore, Identity: last.Members[last.Place(n.address())].Identity, Config: last, Seen: n.model.SetText()})
	}
}

// member is a node as one that is to be added.
func (w *world) member(n *node) protocol.Member {
	return protocol.Member{Identity: "new" + n.run(), Addr: n.address()}
}
