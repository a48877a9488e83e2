package world

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/sim/course"
)

// An attempt of a simulated process: what the runtime does around
// process.Attempt.

// Attempt is an attempt of the process, and what the simulation notes about it.
type Attempt struct {
	Claim *process.Attempt
	Part  *Participant
	no    int // counts the participant's attempts

	Seen    lease.Phase     // as last seen
	T0      protocol.Ticket // T0
	ticket  protocol.Ticket
	Rounds  int
	BeganAt course.Moment
	Settled course.Moment
	Expired bool               // its deadline has passed while it held
	wanted  []protocol.Request // by node: the newest that was to be sent
	Waited  bool               // something of it had to wait for room
	// Something of it has been sent, or would have been if there had been a
	// connection.
	Begun     bool
	Timer     course.Moment
	Second    course.Moment // the second in which requests and ticks are counted
	Requests  int
	Ticks     int
	Mute      bool          // it is not renewed
	EvictedBy uint32        // the nodes that have said so, a bit for each
	place     bool          // it has one of Proc.places
	Bound     course.Moment // when it is renewed no more: see limit
	// The claims at the nodes when it began, less those that the nodes had been
	// sent by then.
	ClaimsThen int
}

func (a *Attempt) String() string {
	if a == nil {
		return "no claim"
	}
	if a.no == 1 && a.Part.Proc.World.Wire != nil {
		return a.Part.Name
	}
	return fmt.Sprintf("%s#%d", a.Part.Name, a.no)
}

// Before notes whether the hold has run out when an event finds the claim.
func (a *Attempt) Before() {
	if a.Seen == lease.Holding && a.Now() >= a.Claim.Deadline() {
		a.Expired = true
	}
}

// event has something happen to the claim.
func (a *Attempt) event(what func()) {
	a.Before()
	what()
	a.After()
}

func (a *Attempt) Now() protocol.Time { return a.Part.Proc.Now() }

// valid: the participant may act as holder.
func (a *Attempt) InForce() bool {
	return a.Claim.State.Phase() == lease.Holding && a.Now() < a.Claim.Deadline()
}

// After does what the claim wants done after an event, and follows its phase.
func (a *Attempt) After() {
	t, w := a.Part, a.Part.Proc.World
	joins := false
	for _, r := range a.Claim.Out {
		a.Requests++
		w.Stats.Requests++
		for len(a.wanted) <= r.Node { // the set has got larger
			a.wanted = append(a.wanted, protocol.Request{})
		}
		a.wanted[r.Node] = r
		joins = joins || r.Op == protocol.OpJoin
	}
	send, news := t.Proc.Client.Step(a.Now(), a.Claim, t.shared())
	if !a.Begun && joins { // T0 is of when it is first sent
		a.T0, a.ticket = a.Claim.State.Ticket(), a.Claim.State.Ticket()
	}
	for i := range send {
		t.Proc.Link(send[i].Node).enqueue(a, &send[i])
	}
	lease.Free(send)
	if a.place && !a.Claim.AwaitsFirstAnswers() {
		a.place = false
		if p := t.Proc; len(p.crowd) > 0 {
			next := p.crowd[0]
			next.queued, p.crowd = false, p.crowd[1:]
			next.begin()
		} else {
			p.places++
		}
	}
	w.Judge.Worked(a)
	if k := a.Claim.State.Ticket(); k != a.ticket {
		if a.Seen == lease.Joining {
			a.Rounds++
		}
		a.ticket = k
	}
	if a.Seen = news.Phase; news.Changed() {
		if w.Trace != nil {
			w.Log("%v: %s, T=%s", a, PhaseName(a.Seen), TicketName(a.ticket))
		}
		if w.Wire != nil {
			w.Wire.Changed(a)
		}
		w.Judge.Changed(a, news.Was)
		a.changed()
	}
	if t.Value != nil {
		t.Value.tell(news)
	}
	a.schedule()
}

// changed is what a participant does when something has become of its attempt.
func (a *Attempt) changed() {
	t, w := a.Part, a.Part.Proc.World
	if a.Seen == lease.Waiting {
		a.Settled = w.Now
	}
	if t.Value != nil {
		if a.Seen == lease.Holding {
			a.limit()
		}
		if a.Seen.Final() && t.Att == a {
			t.Att = nil
		}
		if a == t.Value.Pending {
			t.Value.progress()
		}
		return
	}
	switch a.Seen {
	case lease.Joining, lease.Waiting:
	case lease.Holding:
		a.limit()
		switch {
		case t.run != nil:
			if t.run.held != nil {
				t.run.held(protocol.Version{Ticket: a.Claim.State.Ticket(), ID: a.Claim.State.ID}, true)
			}
		case t.Keeps && !w.Draining:
		case w.Record && t.Lock == 0:
			t.turn(a)
		case t.auto || w.Draining:
			t.releaseLater()
			t.whim(a)
		}
	case lease.Expired:
		t.Att = nil
		if t.Register != nil {
			t.unlocked() // the operator begins again
			return
		}
		if !w.Manual {
			t.Acquire(t.try)
		}
	default:
		if a.Seen == lease.Lost {
			w.Stats.Lost++
		}
		t.Att = nil
		t.unlocked()
		t.idleFor(w.Around(w.Think))
	}
}

// schedule sees to it that the claim gets its Tick. An earlier timer that is
// under way will find out that it is too early.
func (a *Attempt) schedule() {
	w := a.Part.Proc.World
	at := a.Part.Proc.Clock.When(a.Claim.Wake())
	if at == course.Never || at >= a.Timer {
		return
	}
	if w.Late > 0 && w.RNG.IntN(4) == 0 {
		at = at.Add(time.Duration(w.RNG.Int64N(int64(w.Late))))
	}
	a.Timer = max(at, w.Now)
	w.send(Event{At: a.Timer, Kind: EvTimer, Proc: a.Part.Proc, Gen: a.Part.Proc.Epoch, Att: a})
}

// fire is the timer that was set for at.
func (a *Attempt) fire(at course.Moment) {
	if at != a.Timer {
		return
	}
	a.Timer = course.Never
	now := a.Now()
	if a.Claim.Wake() <= now {
		a.Before()
		a.Ticks++
		a.Claim.Tick(now)
		if a.Claim.Wake() <= now {
			a.Part.Proc.World.Fail("busy", "%v wants another Tick at once", a)
		}
	}
	a.After()
}

// limit has the renewal of a hold stop after a while, counted from now.
func (a *Attempt) limit() {
	p := a.Part.Proc
	d := p.World.MaxHold
	if d == 0 || a.Mute {
		return
	}
	a.Bound = p.World.Now.Add(d)
	set := a.Bound
	p.Later(d, func() {
		if a.Bound == set && !a.Claim.State.Phase().Final() && !p.World.Unbound {
			a.Mute = true
			p.World.Tape.Note("mute %s", a.Part.Label())
			a.event(func() { a.Claim.State.StopRenewal() })
		}
	})
}

// passes: a claim that is handed over is bound from then on.
func (a *Attempt) passes(s process.HoldState) process.HoldState {
	if s.Usable {
		a.limit()
	}
	return s
}
