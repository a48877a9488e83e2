package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns an attempt of a simulated process: what the runtime does
// around process.Attempt.

// attempt is an attempt of the process, and what the simulation notes about it.
type attempt struct {
	*process.Attempt
	part *participant
	no   int // counts the participant's attempts

	phase      lease.Phase     // as last seen
	first      protocol.Ticket // T0
	ticket     protocol.Ticket
	rounds     int
	began      moment
	settled    moment
	expired    bool               // its deadline has passed while it held
	wanted     []protocol.Request // by node: the newest that was to be sent
	waited     bool               // something of it had to wait for room
	begun      bool               // something of it has been sent, or would have been if there had been a connection
	timer      moment
	window     moment // the second in which requests and ticks are counted
	requests   int
	ticks      int
	mute       bool   // it is not renewed
	evictedBy  uint32 // the nodes that have said so, a bit for each
	place      bool   // it has one of the intake
	ends       moment // when it is renewed no more: see limit
	claimsThen int    // the claims at the nodes when it began, less those that the nodes had been sent by then
}

func (a *attempt) String() string {
	if a == nil {
		return "no claim"
	}
	if a.no == 1 && a.part.proc.w.wire != nil {
		return a.part.name
	}
	return fmt.Sprintf("%s#%d", a.part.name, a.no)
}

// before notes whether the hold has run out when an event finds the claim.
func (a *attempt) before() {
	if a.phase == lease.Holding && a.local() >= a.Deadline() {
		a.expired = true
	}
}

// event has something happen to the claim.
func (a *attempt) event(what func()) {
	a.before()
	what()
	a.after()
}

func (a *attempt) local() protocol.Time { return a.part.proc.local(a.part.proc.w.now) }

// valid: the participant may act as holder.
func (a *attempt) valid() bool {
	return a.Phase() == lease.Holding && a.local() < a.Deadline()
}

// after does what the claim wants done after an event, and follows its phase.
func (a *attempt) after() {
	t, w := a.part, a.part.proc.w
	for i := range a.Out {
		a.requests++
		w.stats.Requests++
		t.proc.link(a.Out[i].Node).offer(a, &a.Out[i])
	}
	a.Sent()
	if a.place && !a.Underway() {
		a.place = false
		if next, ok := t.proc.intake.Leave(); ok {
			next.queued = nil
			next.begin()
		}
	}
	news := a.News(t.shared())
	w.checks.busy(a)
	if k := a.Ticket(); k != a.ticket {
		if a.phase == lease.Joining {
			a.rounds++
		}
		a.ticket = k
	}
	if a.phase = news.Phase; news.Changed() {
		if w.trace != nil {
			w.log("%v: %s, T=%s", a, phaseName(a.phase), ticketName(a.ticket))
		}
		if w.wire != nil {
			w.wire.changed(a)
		}
		w.checks.changed(a, news.Was)
		a.changed()
	}
	if t.value != nil {
		t.value.tell(news)
	}
	a.schedule()
}

// changed is what a participant does when something has become of its attempt.
func (a *attempt) changed() {
	t, w := a.part, a.part.proc.w
	if a.phase == lease.Waiting {
		a.settled = w.now
	}
	if t.value != nil {
		if a.phase == lease.Holding {
			a.limit()
		}
		if a.phase.Final() && t.att == a {
			t.att = nil
		}
		if a == t.value.pending {
			t.value.progress()
		}
		return
	}
	switch a.phase {
	case lease.Joining, lease.Waiting:
	case lease.Holding:
		a.limit()
		switch {
		case t.run != nil:
			t.run.Locked(protocol.Version{Ticket: a.Ticket(), ID: a.ID}, true)
			t.runs()
		case t.keeps && !w.draining:
		case t.puts:
		case w.record && t.lock == 0:
			t.turn(a)
		case t.auto || w.draining:
			t.releaseLater()
			t.whim(a)
		}
	case lease.Expired:
		t.att = nil
		if t.register != nil {
			t.unlocked() // the operator begins again
			return
		}
		if w.wire == nil || !w.wire.manual {
			t.acquire(t.try)
		}
	default:
		if a.phase == lease.Lost {
			w.stats.Lost++
		}
		t.att = nil
		t.unlocked()
		t.idleFor(w.around(w.think))
	}
}

// schedule sees to it that the claim gets its Tick. An earlier timer that is
// under way will find out that it is too early.
func (a *attempt) schedule() {
	w := a.part.proc.w
	at := a.part.proc.when(a.Wake())
	if at == never || at >= a.timer {
		return
	}
	if w.late > 0 && w.rng.IntN(4) == 0 {
		at = at.add(time.Duration(w.rng.Int64N(int64(w.late))))
	}
	a.timer = max(at, w.now)
	w.send(event{at: a.timer, kind: evTimer, proc: a.part.proc, gen: a.part.proc.epoch, att: a})
}

// fire is the timer that was set for at.
func (a *attempt) fire(at moment) {
	if at != a.timer {
		return
	}
	a.timer = never
	now := a.local()
	if a.Wake() <= now {
		a.before()
		a.ticks++
		a.Tick(now)
		if a.Wake() <= now {
			a.part.proc.w.fail("busy", "%v wants another Tick at once", a)
		}
	}
	a.after()
}

// limit has the renewal of a hold stop after a while, counted from now.
func (a *attempt) limit() {
	p := a.part.proc
	d := p.w.maxHold
	if d == 0 || a.mute {
		return
	}
	a.ends = p.w.now.add(d)
	set := a.ends
	p.later(d, func() {
		if a.ends == set && !a.Phase().Final() && !p.w.unbound {
			a.mute = true
			p.w.tape.note("mute %s", a.part.label())
			a.event(func() { a.StopRenewal() })
		}
	})
}

// passes: a claim that is handed over is bound from then on.
func (a *attempt) passes(s process.Standing) process.Standing {
	if s.Usable {
		a.limit()
	}
	return s
}
