package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file exchanges the nodes of a set, as an operator does, with the code
// that runs in production (protocol.Exchange, protocol.Membership). The
// register that decides which configuration follows is one of the nodes.

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
	x := &exchanger{p: p, goals: goals, e: protocol.Exchange{Patience: max(w.guard, 20*w.nodeTimeout), Rules: w.rules}}
	w.exchanging, w.exchangers = x, append(w.exchangers, x)
	w.at(1, x.loop)
	return x
}

// loop looks at the nodes now and then, until all is done. It goes on in the
// next life of the process.
func (x *exchanger) loop() {
	p, w := x.p, x.p.w
	if x.goesOn() && p.alive && !p.paused && p.members.Config() != nil {
		x.look()
	}
	if x.goesOn() && (w.now < w.limit || w.wire != nil) {
		w.at(x.pause(), x.loop)
	} else if x.over != nil {
		x.over()
	}
}

// pause is how long it is until the nodes are looked at again. Chance has no
// part in a trace.
func (x *exchanger) pause() time.Duration {
	if x.p.w.wire != nil {
		return x.p.w.nodeTimeout / 2
	}
	return x.p.w.around(x.p.w.nodeTimeout / 2)
}

// goesOn reports whether the process has something left to exchange.
func (x *exchanger) goesOn() bool { return len(x.goals) > 0 }

// look finds out how far the exchange is, and goes on with it.
func (x *exchanger) look() {
	p, w := x.p, x.p.w
	c := p.members.Config()
	if x.config != c {
		x.config = c
		x.e.Decided(p.now(), c)
	}
	for k, m := range c.Members {
		l := p.link(m.Number)
		t, asked := &repairTask{step: protocol.RepairStep{Kind: protocol.RepairLook, Node: m.Number, Target: m.Number}}, p.now()
		t.then = func(res protocol.RepairResult) {
			switch {
			case x.config != c || p.members.Config() != c:
			case res.Err != nil:
				x.e.Silent(p.now(), k)
			default:
				x.e.Moved(p.now(), asked, k, !x.e.Saves(k) || l.node.keepsFile(c.Stamp))
				x.e.Looked(k, res.Wait == 0, res.CaughtUp || !p.mends(l.node))
			}
		}
		p.ask(t, m.Number, p.nodeTimeout())
	}
	x.e.Goal, x.e.Undo = x.goals[0], x.e.Undo || x.undo
	switch x.e.Outcome() {
	case protocol.ExchangeGoesOn:
		b := protocol.NewBallot(time.UnixMilli(int64(w.now)/1e6), w.rng.Uint32(), "")
		if next, ask := x.e.Propose(p.now(), b); ask {
			p.follow(c, next)
		}
	case protocol.ExchangeUndone:
		x.goals = nil
	default: // done, by this process or by another one, or the set is another one than the operator took it for
		x.goals = x.goals[1:]
		x.e = protocol.Exchange{Patience: x.e.Patience, Rules: x.e.Rules}
		x.config = nil
	}
}

// keepsFile reports whether the node comes back with a configuration after a
// restart, or with nothing. If not, it writes a snapshot.
func (n *node) keepsFile(s protocol.Stamp) bool {
	if n.saved == nil {
		return true
	}
	set := n.saved.Set()
	if set.Stamp() == s {
		return true
	}
	n.save()
	return false
}

// epoch is that of the configuration that the node serves.
func (n *node) epoch() uint64 {
	set := n.model.Set()
	return set.Stamp().Epoch()
}

// numbered returns which number the process gives to a node, -1 if the node is
// no member.
func (p *proc) numbered(n *node) int {
	if l := p.to(n); l.member() {
		return l.no
	}
	return -1
}

// successor is how the names of the registers begin that decide which
// configuration follows.
const successor = "quorate set "

// follow has the register decide which configuration follows c: next, or what
// was decided before. With nil nothing is proposed.
func (p *proc) follow(c, next *protocol.Configuration) {
	if p.succession == nil {
		p.succession = newParticipant(p, len(p.parts))
		p.succession.value = nil
		p.parts = append(p.parts, p.succession)
	}
	t := p.succession
	if t.att != nil {
		return
	}
	t.register, t.proposal = &protocol.Name{Name: protocol.SuccessorName(c.Stamp)}, next
	t.acquire(false)
	p.later(4*p.ttl(), func() {
		if t.att != nil && t.proposal == next {
			t.release()
		}
	})
}

// decides is what an operator does with its hold: it opens the register, and
// puts its proposal if nothing was decided.
func (t *participant) decides(a *attempt) {
	p, w := t.proc, t.proc.w
	leave := func() {
		if t.att == a {
			t.release()
		}
	}
	put := func(s protocol.Stored) {
		in := protocol.RegisterOp{Op: protocol.OpPut, Stored: s, Succession: true}
		p.startRegisterOp(a, in, func(_ *registerOp, ok bool) {
			if ok {
				w.successor(p, s.Value)
			}
			leave()
		})
	}
	open := protocol.Stored{Version: protocol.Version{Ticket: a.Ticket(), ID: a.ID}}
	p.startRegisterOp(a, protocol.RegisterOp{Op: protocol.OpOpen, Stored: open, Succession: true}, func(i *registerOp, ok bool) {
		found := i.Newest()
		again, few := i.Adopt()
		switch {
		case !ok:
			leave()
		case few:
			put(again)
		case found.Version != (protocol.Version{}):
			w.successor(p, found.Value)
			leave()
		case t.proposal != nil:
			open.Seq, open.Value = 1, []byte(t.proposal.String())
			put(open)
		default:
			w.nothingFollows(p, t.register.Name)
			leave()
		}
	})
}

// nothingFollows: the process has read that nothing was decided yet.
func (w *world) nothingFollows(p *proc, register string) {
	for _, x := range w.exchangers {
		if x.p == p && x.config != nil && protocol.SuccessorName(x.config.Stamp) == register {
			x.e.Read()
		}
	}
}

// successor: the process has read, or recorded, which configuration follows.
// One is decided at most.
func (w *world) successor(p *proc, value []byte) {
	c, ok := protocol.ParseConfiguration(string(value))
	if !ok {
		panic("a successor that makes no sense")
	}
	if w.wire != nil && w.told.Compare(c.Stamp) < 0 {
		w.told = c.Stamp
		w.say("%s decides epoch %d: %v, %s", p.label, c.Stamp.Epoch(), c.Stage, w.roles(c))
	}
	w.decides(c)
	p.members.Decide(c)
	p.regroup()
	w.stopRetired()
}

// roles says which nodes stay, leave and enter.
func (w *world) roles(c *protocol.Configuration) string {
	var words []string
	for _, r := range []protocol.Role{protocol.Stays, protocol.Leaves, protocol.Enters} {
		for i, n := range w.nodes {
			if k := c.Place(n.address()); k >= 0 && c.Members[k].Role == r {
				words = append(words, fmt.Sprint(i+1)+[]string{"", " leaves", " enters"}[r])
			}
		}
	}
	return strings.Join(words, ", ")
}

// member is a node as one that is to be added.
func (w *world) member(n *node) protocol.Member {
	w.added++
	return protocol.Member{Identity: fmt.Sprintf("new%d.%d", n.idx, w.added), Addr: n.address()}
}
