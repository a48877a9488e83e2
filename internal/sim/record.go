package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// registerOp is an operation on the record, and what the simulation notes about
// it.
type registerOp struct {
	*lease.RegisterOp
	proc   *proc
	owner  *attempt // whose run it belongs to; nil for a reader
	no     int
	name   *process.Name    // of the register that decides which configuration follows; nil: the record
	before protocol.Version // what had been settled when it began
	over   bool
	timer  moment
	then   func(ok bool)
}

func (i *registerOp) String() string {
	actor := "reader " + i.proc.name
	if i.owner != nil {
		actor = i.owner.String()
	}
	return fmt.Sprintf("%s (%v %d)", actor, i.Op, i.no)
}

// registerOps are those of a process that are under way.
type registerOps struct {
	p   *proc
	ops []*registerOp
}

// startRegisterOp starts an operation on the record; then is called when it is
// decided, or given up after a while.
func (o *registerOps) startRegisterOp(owner *attempt, in lease.RegisterOp, then func(i *registerOp, ok bool)) {
	var name *process.Name
	if owner != nil {
		name = owner.part.register
	}
	o.startNamedOp(o.p.w.around(cmp.Or(o.p.w.persist, 3*o.p.w.ttl)), owner, name, in, then)
}

// startNamedOp is that with the name, and with the time after which it is given
// up.
func (o *registerOps) startNamedOp(limit time.Duration, owner *attempt, name *process.Name, in lease.RegisterOp, then func(i *registerOp, ok bool)) {
	p, w := o.p, o.p.w
	w.registerOps++
	i := &registerOp{RegisterOp: &in, proc: p, owner: owner, name: name, no: w.registerOps, before: w.ledger.best, timer: never}
	i.then = func(ok bool) { then(i, ok) }
	o.ops = append(o.ops, i)
	if w.trace != nil {
		w.log("%v: begins, %s", i, versionName(in.Stored.Version))
	}
	if w.tape != nil {
		w.tape.registerOp(p, owner, i.RegisterOp)
	}
	of := ""
	if name != nil {
		of = name.Name
	}
	p.client.StartRegisterOp(p.now(), i.RegisterOp, of, p.w.nodeTimeout, p.w.ttl, w.rules)
	i.after()
	p.later(limit, func() { i.end(false) })
}

// eachOp has something happen to each operation.
func (o *registerOps) eachOp(what func(i *registerOp)) {
	for _, i := range slices.Clone(o.ops) {
		what(i)
		i.after()
	}
}

// reads has a process look at the record now and then.
func (o *registerOps) reads() {
	p, w := o.p, o.p.w
	p.later(w.around(2*w.think+2*w.hold), func() {
		if !w.draining {
			if p.waits(false) {
				o.reads()
				return
			}
			o.startRegisterOp(nil, lease.RegisterOp{Op: protocol.OpRead, Alive: w.rng.IntN(2) == 0}, func(*registerOp, bool) {})
			o.reads()
		}
	})
}

// after does what the register operation wants done after an event.
func (i *registerOp) after() {
	p, w := i.proc, i.proc.w
	if i.over {
		return
	}
	if i.owner != nil && !i.Follow(p.now(), i.owner.valid()) {
		i.end(false)
		return
	}
	for k := range i.Out {
		w.stats.Requests++
		p.link(i.Out[k].Node).offerRecord(i, &i.Out[k])
	}
	i.Out = i.Out[:0]
	if i.Outcome() != lease.Asking {
		i.end(true)
		return
	}
	at := p.when(i.Wake())
	if at == never || at >= i.timer {
		return
	}
	i.timer = max(at, w.now+1)
	set := i.timer
	w.queue.push(event{at: set, kind: evProc, proc: p, gen: p.epoch, fn: func() {
		if i.timer == set && !i.over {
			i.timer = never
			i.Tick(p.local(w.now))
			i.after()
		}
	}})
}

func (i *registerOp) end(decided bool) {
	if i.over {
		return
	}
	w := i.proc.w
	i.over = true
	i.End()
	i.proc.ops = slices.DeleteFunc(i.proc.ops, func(o *registerOp) bool { return o == i })
	if !decided {
		w.tape.note("giveup %d", i.no)
	}
	settled := decided && i.Outcome() == lease.Settled
	if w.trace != nil {
		w.log("%v: outcome %d, newest %s", i, i.Outcome(), versionName(i.Newest().Version))
	}
	if settled && i.name == nil {
		w.ledger.settled(w, i)
	}
	i.then(settled)
}

// carryOut carries out the steps of a Run under claims of the participant, and
// calls then. If one is under way, this one comes to nothing.
func (t *participant) carryOut(r *lease.Run, then func()) {
	if t.run != nil || t.att != nil {
		t.proc.later(t.proc.w.delay, then)
		return
	}
	t.run, t.ran = r, then
	t.runs()
}

func (t *participant) runs() {
	p, r := t.proc, t.run
	recorded := func(i *registerOp, ok bool) {
		if t.run == r {
			r.Recorded(i.RegisterOp, ok || i.Op == protocol.OpRead && i.Outcome() == lease.Inconclusive)
			t.runs()
		}
	}
	switch r.Step() {
	case lease.RunLock:
		p.later(r.Within, func() {
			if t.run == r && r.Step() != lease.RunRead {
				r.Expired()
				t.runs()
			}
		})
		t.acquire(r.Try)
	case lease.RunRead:
		t.release()
		p.startRegisterOp(nil, r.Op, recorded)
	case lease.RunRecord:
		p.startRegisterOp(t.att, r.Op, recorded)
	case lease.RunOver:
		then := t.ran
		t.run, t.ran = nil, nil
		t.release()
		then()
	}
}

// unlocked: the claim of a Run has come to nothing, or has ended.
func (t *participant) unlocked() {
	if r := t.run; r != nil && r.Step() == lease.RunLock {
		r.Locked(protocol.Version{}, false)
		t.runs()
	}
}

// turn is what a participant does with its hold when there is a record: it
// begins a run, and if the thing has not been done, does it and records it.
func (t *participant) turn(a *attempt) {
	p, w := t.proc, t.proc.w
	leave := func(bool) {
		if t.att == a {
			t.release()
		}
	}
	version := protocol.Version{Ticket: a.Ticket(), ID: a.ID, Seq: 1} // 0 is for what is recorded again
	put := func(s protocol.Stored) {
		p.startRegisterOp(a, lease.RegisterOp{Op: protocol.OpPut, Stored: s}, func(_ *registerOp, ok bool) { leave(ok) })
	}
	p.startRegisterOp(a, lease.RegisterOp{Op: protocol.OpOpen, Stored: protocol.Stored{Version: protocol.Version{Ticket: a.Ticket(), ID: a.ID}}}, func(i *registerOp, ok bool) {
		found := i.Newest()
		adopted, few := i.Adopt()
		switch {
		case !ok:
			leave(false)
		case few && w.rng.IntN(2) == 0:
			put(adopted)
		case few: // and then something of its own, as a Reset does
			p.startRegisterOp(a, lease.RegisterOp{Op: protocol.OpPut, Stored: adopted}, func(*registerOp, bool) {
				put(protocol.Stored{Version: version, Erased: true})
			})
		case found.Version != (protocol.Version{}) && !found.Erased && w.rng.IntN(3) > 0:
			leave(true) // done before
		default: // not done, or it is to be done again
			work := w.around(w.hold)
			if w.draining {
				work = w.around(w.ttl / 20)
			}
			p.later(work, func() {
				if t.att == a || w.rng.IntN(2) == 0 { // a loss may come too late to keep it from being done
					put(protocol.Stored{Version: version, Erased: w.rng.IntN(3) == 0, Value: []byte(a.String())})
				}
			})
		}
	})
}
