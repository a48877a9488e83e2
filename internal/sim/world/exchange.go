package world

import (
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// This file makes the calls of operators by the code that runs in production
// (change.Operator), and has their questions answered, as package operator
// does. The register that decides which configuration follows is one of the
// nodes.

// exchanger is an operator's program: it makes calls that exchange nodes, one
// after the other. One that dies with its process is made again.
type exchanger struct {
	P     *Proc
	Call  *change.Operator // the call under way; nil: none
	Goals []change.Goal
	Undo  bool // it gives the exchange up
	io    *operatorIO
	Over  func()
}

// Exchange has the process carry out changes, one after the other.
func (p *Proc) Exchange(goals ...change.Goal) *exchanger {
	x := &exchanger{P: p, Goals: goals}
	p.World.Exchanging, p.World.Exchangers = x, append(p.World.Exchangers, x)
	p.Later(1, x.begin)
	return x
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
	x.Call = &change.Operator{Exchange: change.Exchange{Undo: x.Undo}, TTL: w.TTL,
		NodeTimeout: w.NodeTimeout, Fanout: p.Client.Fanout()}
	if !x.Undo {
		x.Call.Goal = x.Goals[0]
	}
	p.run(func(t *task) {
		x.io = &operatorIO{task: t}
		if end := x.Call.Run(x.io); !t.gone {
			x.ended(end)
		}
	})
}

// GoesOn reports whether the program has something left to do.
func (x *exchanger) GoesOn() bool { return len(x.Goals) > 0 }

// GiveUp has the program break its call off, and undo what that leaves.
func (x *exchanger) GiveUp() {
	x.Undo = true
	x.P.Later(1, func() {
		if x.Call != nil && x.P.Alive {
			x.io.stop()
		}
	})
}

// ended goes on after a call.
func (x *exchanger) ended(end change.OperatorEnd) {
	p, w := x.P, x.P.World
	switch {
	case !x.GoesOn(): // the program was ended
	case end == change.OperatorUndone, x.Undo && end == change.OperatorDone:
		x.Goals = nil
	case end == change.OperatorDone, end == change.OperatorUnfit: // by this program or another one
		x.Goals = x.Goals[1:]
	}
	if x.Call = nil; x.GoesOn() && (w.Now < w.Limit || w.Wire != nil) {
		p.Later(w.NodeTimeout, x.begin)
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

// operatorIO is the change.IO of a call.
type operatorIO struct {
	*task
	stopped bool
}

// stop ends what the call waits for. Answers that come later are not used any
// more.
func (io *operatorIO) stop() {
	if !io.stopped {
		io.stopped = true
		io.cut()
	}
}

// await waits until done is called or the call is stopped.
func (io *operatorIO) await(begin func(done func())) {
	if !io.stopped {
		io.wait(begin)
	}
}

func (io *operatorIO) Now() protocol.Time             { return io.p.Now() }
func (io *operatorIO) Config() *nodeset.Configuration { return io.p.Follower.Members.Config() }
func (io *operatorIO) Stopped() bool                  { return io.stopped || io.gone }
func (io *operatorIO) Ballot() nodeset.Ballot         { return io.p.Follower.Ballot("") }
func (*operatorIO) Report(change.OperatorProgress)    {}

func (io *operatorIO) Each(n int, f func(io change.IO, k int)) {
	if !io.stopped {
		io.each(n, func(t *task, k int) { f(&operatorIO{task: t}, k) })
	}
}

// Sleep lasts a little longer. Chance has no part in a trace.
func (io *operatorIO) Sleep(until protocol.Time) {
	p, w := io.p, io.p.World
	io.await(func(done func()) {
		at := max(p.Clock.When(until), w.Now+1)
		switch {
		case w.Wire != nil:
		case w.Now >= w.Limit:
			return // for good
		default:
			at = at.Add(w.Around(w.NodeTimeout / 8))
		}
		p.Later(time.Duration(at-w.Now), done)
	})
}

// Within has nothing else stop f.
func (io *operatorIO) Within(d time.Duration, f func(io change.IO)) {
	p, own := io.p, &operatorIO{task: io.task}
	io.stopped = true
	p.Later(time.Duration(p.Clock.When(p.Now().Add(d))-p.World.Now), own.stop)
	f(own)
}

func (io *operatorIO) Look(m nodeset.Member, _ nodeset.Stamp, _ bool) change.MemberLook {
	n := io.p.Link(m.Number).Node
	shows, err := io.look(m.Number)
	caughtUp := shows.CaughtUp || !io.p.Mender.mends(n)
	look := change.MemberLook{Silent: err != nil, Wait: shows.Wait, CaughtUp: caughtUp}
	if err == errRefused {
		look.Refused = err
	}
	look.Disk = change.Persistence{Known: true, Saved: true, Snapshots: n.saved != nil}
	return look
}

func (io *operatorIO) Snapshot(m nodeset.Member, _ bool) change.Persistence {
	p, n, begins := io.p, io.p.Link(m.Number).Node, false
	io.await(func(done func()) {
		p.Later(2*p.World.Delay, func() {
			if begins = p.reaches(n); begins {
				end := p.World.Tape.Within()
				n.Save()
				end()
			}
			done()
		})
	})
	return change.Persistence{Known: begins, Saving: begins}
}

func (io *operatorIO) Succeed(s *change.Succession) []error {
	io.await(func(done func()) {
		io.p.Follower.Succeed(s, func() {
			if c, _ := s.Decided(); c != nil {
				io.p.World.Decisions.Successor(io.p, c)
			}
			done()
		})
	})
	return nil
}

// epoch is that of the configuration that the node serves.
func (n *Node) epoch() uint64 {
	set := n.Model.Set()
	return set.Stamp().Epoch()
}

// successor is how the names of the registers begin that decide which
// configuration follows.
const successor = "quorate set "

// At is the condition that the process counts on a configuration of that epoch or
// a later one.
func (f *follower) At(epoch uint64) func() bool {
	return func() bool { return f.Members.Config().Stamp.Epoch() >= epoch }
}

// Succeed carries out a Succession, and calls then.
func (f *follower) Succeed(s *change.Succession, then func()) {
	p := f.p
	if f.Succession == nil {
		f.Succession = NewParticipant(p, len(p.Parts))
		f.Succession.Value = nil
		p.Parts = append(p.Parts, f.Succession)
	}
	t := f.Succession
	if t.run == nil {
		t.Register, t.succeeds = &process.Name{Name: s.Register}, s
	}
	t.carryOut(s.Decide, func(bool) { then() })
}
