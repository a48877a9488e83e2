package sim

import (
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/repair"
)

// This file gives the calls of operators (change.Operator) the time and what
// the nodes say, and carries out their steps, as package operator does. The
// register that decides which configuration follows is one of the nodes.

// exchanger is an operator's program: it makes calls that exchange nodes, one
// after the other. One that dies with its process is made again.
type exchanger struct {
	p     *proc
	o     *change.Operator // the call under way; nil: none
	goals []change.Goal
	undo  bool   // it gives the exchange up
	timer moment // when the call gets its Tick
	over  func()
}

// begin makes the next call. One that undoes has no goal.
func (x *exchanger) begin() {
	p, w := x.p, x.p.w
	switch {
	case !p.alive:
		return
	case !x.goesOn():
		x.ends()
		return
	}
	x.o, x.timer = &change.Operator{
		Exchange: change.Exchange{Undo: x.undo, Rules: w.rules}, TTL: p.w.ttl, NodeTimeout: p.w.nodeTimeout, Fanout: p.client.Fanout(),
		Ballot: func() nodeset.Ballot {
			return nodeset.NewBallot(time.UnixMilli(int64(w.now)/1e6), w.rng.Uint32(), "")
		},
	}, never
	if !x.undo {
		x.o.Goal = x.goals[0]
	}
	x.tick()
}

// goesOn reports whether the program has something left to do.
func (x *exchanger) goesOn() bool { return len(x.goals) > 0 }

// giveUp has the program break its call off, and undo what that leaves.
func (x *exchanger) giveUp() {
	x.undo = true
	x.p.later(1, func() {
		if x.o != nil && x.p.alive {
			x.o.Abandon(x.p.now(), x.p.members.Config())
			x.after()
		}
	})
}

func (x *exchanger) tick() {
	x.o.Tick(x.p.now(), x.p.members.Config())
	x.after()
}

// after does what the call wants done after an event.
func (x *exchanger) after() {
	p, w, o := x.p, x.p.w, x.o
	todo := o.Out
	o.Out = nil
	for _, s := range todo {
		x.step(o, s)
	}
	if x.o != o {
		return
	}
	switch end := o.End(); {
	case !x.goesOn(): // the program was ended
		x.o = nil
	case end == change.OperatorGoesOn:
		x.schedule()
		return
	case end == change.OperatorUndone, x.undo && end == change.OperatorDone:
		x.goals = nil
	case end == change.OperatorDone, end == change.OperatorUnfit: // by this program or another one
		x.goals = x.goals[1:]
	}
	if x.goesOn() && (w.now < w.limit || w.wire != nil) {
		x.o = nil
		p.later(p.w.nodeTimeout, x.begin)
		return
	}
	x.ends()
}

func (x *exchanger) ends() {
	if x.over != nil {
		x.over()
		x.over = nil
	}
}

// schedule sees to it that the call gets its Tick. Chance has no part in a
// trace.
func (x *exchanger) schedule() {
	p, w := x.p, x.p.w
	at := p.when(x.o.Wake())
	if at == never || at >= x.timer && x.timer > w.now || w.now >= w.limit && w.wire == nil {
		return
	}
	if at = max(at, w.now+1); w.wire == nil {
		at = at.add(w.around(p.w.nodeTimeout / 8))
	}
	x.timer = at
	o := x.o
	p.later(time.Duration(at-w.now), func() {
		if x.o == o && x.timer == at {
			x.timer = never
			x.tick()
		}
	})
}

// step carries out one step of a call.
func (x *exchanger) step(o *change.Operator, s change.OperatorStep) {
	p, w := x.p, x.p.w
	l := p.link(s.Member.Number)
	told := func() {
		if x.o == o {
			x.after()
		}
	}
	switch s.Kind {
	case change.OperatorLook:
		t := &repairTask{step: repair.RepairStep{Kind: repair.RepairLook, Node: s.Member.Number, Target: s.Member.Number}}
		t.then = func(res repair.RepairResult) {
			look := change.MemberLook{Silent: res.Err != nil, Refused: res.Err == errRefused, Wait: res.Wait, CaughtUp: res.CaughtUp || !p.mends(l.node)}
			look.Disk = change.Persistence{Known: true, Saved: true, Snapshots: l.node.saved != nil}
			o.Looked(p.now(), s, look)
			told()
		}
		p.ask(t, s.Member.Number, p.w.nodeTimeout)
	case change.OperatorSnapshot:
		p.later(2*w.delay, func() {
			begins := p.reaches(l.node)
			if begins {
				end := w.tape.within()
				l.node.save()
				end()
			}
			o.Begun(p.now(), s, change.Persistence{Known: begins, Saving: begins})
			told()
		})
	case change.OperatorSucceed:
		p.succeed(s.Succession, func() {
			if c := o.Succeeded(p.now(), s, 0); c != nil {
				w.successor(p, c)
			}
			told()
		})
	}
}

// epoch is that of the configuration that the node serves.
func (n *node) epoch() uint64 {
	set := n.model.Set()
	return set.Stamp().Epoch()
}

// successor is how the names of the registers begin that decide which
// configuration follows.
const successor = "quorate set "
