package world

import (
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/sim/course"
)

// This file gives the calls of operators (change.Operator) the time and what
// the nodes say, and carries out their steps, as package operator does. The
// register that decides which configuration follows is one of the nodes.

// exchanger is an operator's program: it makes calls that exchange nodes, one
// after the other. One that dies with its process is made again.
type exchanger struct {
	P     *Proc
	Call  *change.Operator // the call under way; nil: none
	Goals []change.Goal
	Undo  bool          // it gives the exchange up
	timer course.Moment // when the call gets its Tick
	Over  func()
}

// begin makes the next call. One that undoes has no goal.
func (x *exchanger) begin() {
	p, w := x.P, x.P.World
	switch {
	case !p.Alive:
		return
	case !x.GoesOn():
		x.ends()
		return
	}
	x.Call, x.timer = &change.Operator{
		Exchange: change.Exchange{Undo: x.Undo}, TTL: p.World.TTL, NodeTimeout: p.World.NodeTimeout, Fanout: p.Client.Fanout(),
		Ballot: func() nodeset.Ballot {
			return nodeset.NewBallot(time.UnixMilli(int64(w.Now)/1e6), w.RNG.Uint32(), "")
		},
	}, course.Never
	if !x.Undo {
		x.Call.Goal = x.Goals[0]
	}
	x.tick()
}

// GoesOn reports whether the program has something left to do.
func (x *exchanger) GoesOn() bool { return len(x.Goals) > 0 }

// GiveUp has the program break its call off, and undo what that leaves.
func (x *exchanger) GiveUp() {
	x.Undo = true
	x.P.Later(1, func() {
		if x.Call != nil && x.P.Alive {
			x.Call.Abandon(x.P.Now(), x.P.Members.Config())
			x.after()
		}
	})
}

func (x *exchanger) tick() {
	x.Call.Tick(x.P.Now(), x.P.Members.Config())
	x.after()
}

// after does what the call wants done after an event.
func (x *exchanger) after() {
	p, w, o := x.P, x.P.World, x.Call
	todo := o.Out
	o.Out = nil
	for _, s := range todo {
		x.step(o, s)
	}
	if x.Call != o {
		return
	}
	switch end := o.End(); {
	case !x.GoesOn(): // the program was ended
		x.Call = nil
	case end == change.OperatorGoesOn:
		x.schedule()
		return
	case end == change.OperatorUndone, x.Undo && end == change.OperatorDone:
		x.Goals = nil
	case end == change.OperatorDone, end == change.OperatorUnfit: // by this program or another one
		x.Goals = x.Goals[1:]
	}
	if x.GoesOn() && (w.Now < w.Limit || w.Wire != nil) {
		x.Call = nil
		p.Later(p.World.NodeTimeout, x.begin)
		return
	}
	x.ends()
}

func (x *exchanger) ends() {
	if x.Over != nil {
		x.Over()
		x.Over = nil
	}
}

// schedule sees to it that the call gets its Tick. Chance has no part in a
// trace.
func (x *exchanger) schedule() {
	p, w := x.P, x.P.World
	at := p.When(x.Call.Wake())
	if at == course.Never || at >= x.timer && x.timer > w.Now || w.Now >= w.Limit && w.Wire == nil {
		return
	}
	if at = max(at, w.Now+1); w.Wire == nil {
		at = at.Add(w.Around(p.World.NodeTimeout / 8))
	}
	x.timer = at
	o := x.Call
	p.Later(time.Duration(at-w.Now), func() {
		if x.Call == o && x.timer == at {
			x.timer = course.Never
			x.tick()
		}
	})
}

// step carries out one step of a call.
func (x *exchanger) step(o *change.Operator, s change.OperatorStep) {
	p, w := x.P, x.P.World
	l := p.Link(s.Member.Number)
	told := func() {
		if x.Call == o {
			x.after()
		}
	}
	switch s.Kind {
	case change.OperatorLook:
		p.run(func(t *task) {
			m, err := t.look(s.Member.Number)
			if t.gone {
				return
			}
			look := change.MemberLook{Silent: err != nil, Refused: err == errRefused, Wait: m.Wait, CaughtUp: m.CaughtUp || !p.mends(l.Node)}
			look.Disk = change.Persistence{Known: true, Saved: true, Snapshots: l.Node.saved != nil}
			o.Looked(p.Now(), s, look)
			told()
		})
	case change.OperatorSnapshot:
		p.Later(2*w.Delay, func() {
			begins := p.reaches(l.Node)
			if begins {
				end := w.Tape.Within()
				l.Node.Save()
				end()
			}
			o.Begun(p.Now(), s, change.Persistence{Known: begins, Saving: begins})
			told()
		})
	case change.OperatorSucceed:
		p.Succeed(s.Succession, func() {
			if c := o.Succeeded(p.Now(), s, 0); c != nil {
				w.Successor(p, c)
			}
			told()
		})
	}
}

// epoch is that of the configuration that the node serves.
func (n *Node) epoch() uint64 {
	set := n.Model.Set()
	return set.Stamp().Epoch()
}

// successor is how the names of the registers begin that decide which
// configuration follows.
const successor = "quorate set "
