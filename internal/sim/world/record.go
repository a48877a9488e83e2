package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// RegisterOp is an operation on the record, and what the simulation notes about
// it.
type RegisterOp struct {
	Op     *lease.RegisterOp
	proc   *Proc
	owner  *Attempt // whose run it belongs to; nil for a reader
	No     int
	name   *process.Name    // of the register that decides which configuration follows; nil: the record
	Before protocol.Version // what had been settled when it began
	over   bool
	timer  course.Moment
	then   func(ok bool)
}

func (i *RegisterOp) String() string {
	actor := "reader " + i.proc.Name
	if i.owner != nil {
		actor = i.owner.String()
	}
	return fmt.Sprintf("%s (%v %d)", actor, i.Op.Op, i.No)
}

// registerOps are those of a process that are under way.
type registerOps struct {
	p   *Proc
	Ops []*RegisterOp
}

// Start starts an operation on the record; then is called when it is
// decided, or given up after a while.
func (o *registerOps) Start(owner *Attempt, in lease.RegisterOp, then func(i *RegisterOp, ok bool)) {
	var name *process.Name
	if owner != nil {
		name = owner.Part.Register
	}
	o.StartNamed(o.p.World.Around(cmp.Or(o.p.World.Persist, 3*o.p.World.TTL)), owner, name, in, then)
}

// StartNamed is that with the name, and with the time after which it is given
// up.
func (o *registerOps) StartNamed(limit time.Duration, owner *Attempt, name *process.Name, in lease.RegisterOp,
	then func(i *RegisterOp, ok bool)) {
	p, w := o.p, o.p.World
	w.registerOps++
	i := &RegisterOp{Op: &in, proc: p, owner: owner, name: name, No: w.registerOps, timer: course.Never}
	w.Judge.OpBegins(i)
	i.then = func(ok bool) { then(i, ok) }
	o.Ops = append(o.Ops, i)
	if w.Trace != nil {
		w.Log("%v: begins, %s", i, VersionName(in.Stored.Version))
	}
	if w.Tape != nil {
		w.tapeRegisterOp(p, owner, i.Op)
	}
	of := ""
	if name != nil {
		of = name.Name
	}
	p.Client.StartRegisterOp(p.Now(), i.Op, of, p.World.NodeTimeout, p.World.TTL)
	i.after()
	p.Later(limit, func() { i.Finish(false) })
}

// each has something happen to each operation.
func (o *registerOps) each(what func(i *RegisterOp)) {
	for _, i := range slices.Clone(o.Ops) {
		what(i)
		i.after()
	}
}

// Reads has a process look at the record now and then.
func (o *registerOps) Reads() {
	p, w := o.p, o.p.World
	p.Later(w.Around(2*w.Think+2*w.Hold), func() {
		if !w.Draining {
			if p.Follower.waits() {
				o.Reads()
				return
			}
			o.Start(nil, lease.RegisterOp{Op: protocol.OpRead, Alive: w.RNG.IntN(2) == 0}, func(*RegisterOp, bool) {})
			o.Reads()
		}
	})
}

// after does what the register operation wants done after an event.
func (i *RegisterOp) after() {
	p, w := i.proc, i.proc.World
	if i.over {
		return
	}
	if i.owner != nil && !i.Op.Follow(p.Now(), i.owner.InForce()) {
		i.Finish(false)
		return
	}
	for k := range i.Op.Out {
		w.Stats.Requests++
		p.Link(i.Op.Out[k].Node).enqueueRecord(i, &i.Op.Out[k])
	}
	i.Op.Out = i.Op.Out[:0]
	if i.Op.Outcome() != lease.Asking {
		i.Finish(true)
		return
	}
	at := p.Clock.When(i.Op.Wake())
	if at == course.Never || at >= i.timer {
		return
	}
	i.timer = max(at, w.Now+1)
	set := i.timer
	w.Queue.Push(set, Event{At: set, Kind: evProc, Proc: p, Gen: p.Epoch, fn: func() {
		if i.timer == set && !i.over {
			i.timer = course.Never
			i.Op.Tick(p.Now())
			i.after()
		}
	}})
}

func (i *RegisterOp) Finish(decided bool) {
	if i.over {
		return
	}
	w := i.proc.World
	i.over = true
	i.Op.End()
	all := &i.proc.RegisterOps
	all.Ops = slices.DeleteFunc(all.Ops, func(o *RegisterOp) bool { return o == i })
	if !decided {
		w.Tape.Note("giveup %d", i.No)
	}
	settled := decided && i.Op.Outcome() == lease.Settled
	if w.Trace != nil {
		w.Log("%v: outcome %d, newest %s", i, i.Op.Outcome(), VersionName(i.Op.Newest().Version))
	}
	if settled && i.name == nil {
		w.Judge.OpSettled(i)
	}
	i.then(settled)
}

// runIO is the lease.RunIO of a Run that a participant carries out.
type runIO struct {
	*task
	t     *Participant
	held  func(v protocol.Version, held bool) // ends Lock; nil: it is over
	under bool                                // the time from Lock to Release runs
	late  bool                                // and has run out
}

// carryOut has a Run work under claims of the participant, and calls then. If
// one is under way, this one comes to nothing.
func (t *Participant) carryOut(work func(io lease.RunIO) bool, then func(ok bool)) {
	if t.run != nil || t.Att != nil {
		t.Proc.Later(t.Proc.World.Delay, func() { then(false) })
		return
	}
	t.run = &runIO{t: t}
	t.Proc.run(func(on *task) {
		t.run.task = on
		if ok := work(t.run); !on.gone {
			t.run = nil
			then(ok)
		}
	})
}

func (io *runIO) Lock(try bool, within time.Duration) (v protocol.Version, held bool) {
	io.under, io.late = true, false
	io.wait(func(done func()) {
		io.held = func(got protocol.Version, ok bool) {
			v, held, io.held = got, ok, nil
			done()
		}
		io.p.Later(within, func() {
			if io.late = io.under; io.late {
				io.held = nil
				io.cut()
			}
		})
		io.t.Acquire(try)
	})
	return v, held
}

func (io *runIO) Release() {
	io.under, io.held = false, nil
	if !io.gone {
		io.t.Release()
	}
}

func (io *runIO) Do(op lease.RegisterOp) (found lease.RunResult, ok bool) {
	if io.late && io.under {
		return found, false
	}
	var owner *Attempt
	if io.under {
		owner = io.t.Att
	}
	io.wait(func(done func()) {
		io.p.RegisterOps.Start(owner, op, func(i *RegisterOp, settled bool) {
			found, ok = i.Op.Result(), settled || op.Op == protocol.OpRead && i.Op.Outcome() == lease.Inconclusive
			done()
		})
	})
	return found, ok
}

// unlocked: the claim of a Run has come to nothing, or has ended.
func (t *Participant) unlocked() {
	if t.run != nil && t.run.held != nil {
		t.run.held(protocol.Version{}, false)
	}
}

// turn is what a participant does with its hold when there is a record: it
// begins a run, and if the thing has not been done, does it and records it.
func (t *Participant) turn(a *Attempt) {
	p, w := t.Proc, t.Proc.World
	leave := func(bool) {
		if t.Att == a {
			t.Release()
		}
	}
	// 0 is for what is recorded again.
	version := protocol.Version{Ticket: a.Claim.State.Ticket(), ID: a.Claim.State.ID, Seq: 1}
	put := func(s protocol.Stored) {
		p.RegisterOps.Start(a, lease.RegisterOp{Op: protocol.OpPut, Stored: s},
			func(_ *RegisterOp, ok bool) { leave(ok) })
	}
	run := protocol.Stored{Version: protocol.Version{Ticket: a.Claim.State.Ticket(), ID: a.Claim.State.ID}}
	p.RegisterOps.Start(a, lease.RegisterOp{Op: protocol.OpOpen, Stored: run}, func(i *RegisterOp, ok bool) {
		found := i.Op.Newest()
		adopted, few := i.Op.Adopt()
		switch {
		case !ok:
			leave(false)
		case few && w.RNG.IntN(2) == 0:
			put(adopted)
		case few: // and then something of its own, as a Reset does
			p.RegisterOps.Start(a, lease.RegisterOp{Op: protocol.OpPut, Stored: adopted}, func(*RegisterOp, bool) {
				put(protocol.Stored{Version: version, Erased: true})
			})
		case found.Version != (protocol.Version{}) && !found.Erased && w.RNG.IntN(3) > 0:
			leave(true) // done before
		default: // not done, or it is to be done again
			work := w.Around(w.Hold)
			if w.Draining {
				work = w.Around(w.TTL / 20)
			}
			p.Later(work, func() {
				if t.Att == a || w.RNG.IntN(2) == 0 { // a loss may come too late to keep it from being done
					put(protocol.Stored{Version: version, Erased: w.RNG.IntN(3) == 0, Value: []byte(a.String())})
				}
			})
		}
	})
}
