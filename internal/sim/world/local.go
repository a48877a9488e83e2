package world

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/sim/course"
)

// Value is what callers of one process share: a local queue, and the
// participant whose claims it uses. It does for process.LocalQueue what
// package localqueue does for it in production; where that unlocks, or where a
// goroutine wakes, other events may come between here too.
type Value struct {
	Part    *Participant
	Queue   process.LocalQueue[*Caller, *Attempt]
	Callers []*Caller
	Lease   *localTurn    // of the turn under way, or of the last one
	Pending *Attempt      // what the getter gets
	getter  *Caller       // nil: no caller has run yet that goes on with it
	timer   bool          // Lingered is going to be called
	Stall   time.Duration // how much later than the claim's an Unlock reads the clock
	lines   int           // counts the callers that waited
	KeptOut course.Moment // since when a reader waits that need not; 0: none does
}

// localTurn is one turn under a claim.
type localTurn struct {
	Att   *Attempt
	N     int
	Ended bool // the callers have learned that it is over
}

func (l *localTurn) Token() uint64 {
	return uint64(l.Att.Claim.State.Ticket())*process.HandOvers + uint64(l.N)
}

func newValue(t *Participant) *Value {
	w := t.Proc.World
	v := &Value{Part: t}
	v.Queue.TTL, v.Queue.Linger = t.Proc.TTL, w.Linger
	for i := range w.Callers {
		v.Callers = append(v.Callers, &Caller{Value: v, Name: fmt.Sprintf("%s/%d", t.Name, i)})
	}
	return v
}

// Rename gives the callers their names in a trace.
func (v *Value) Rename() {
	for i, c := range v.Callers {
		c.Name = fmt.Sprintf("%s/%d", v.Part.Label(), i+1)
	}
}

// idle: no caller holds or wants anything, and the claim does not linger.
func (v *Value) idle() bool {
	for _, c := range v.Callers {
		if c.Doing != Resting {
			return false
		}
	}
	return v.Part.Att == nil
}

func (v *Value) Loop() {
	for _, c := range v.Callers {
		c.Auto = true
		c.Rest()
	}
}

// schedule is when a goroutine runs that could run now.
func (v *Value) schedule(fn func()) {
	w := v.Part.Proc.World
	d := w.Wakes
	if w.Wire == nil && w.RNG.IntN(4) == 0 {
		d = time.Duration(w.RNG.Int64N(int64(w.Delay)))
	}
	v.Part.Proc.Later(d, fn)
}

// renew makes the lease of the turn under way.
func (v *Value) renew() {
	a, n := v.Queue.Claim()
	v.Lease = &localTurn{Att: a, N: n}
}

// progress looks what has become of the attempt that the getter waits for.
func (v *Value) progress() {
	a, c := v.Pending, v.getter
	if a == nil || c == nil {
		return
	}
	switch a.Seen {
	case lease.Joining, lease.Waiting:
	case lease.Holding:
		v.schedule(func() { v.take(a) })
	case lease.Expired, lease.Lost:
		if !c.try {
			c.get(nil, false)
			return
		}
		fallthrough
	default:
		v.getter, v.Pending = nil, nil
		c.Rest()
		v.next(c.Mode, c.try, false)
	}
}

// take: the getter finds the claim admitted.
func (v *Value) take(a *Attempt) {
	if v.Pending != a {
		return
	}
	a.event(func() { a.Claim.Take(a.Now()) })
	if v.Pending != a || a.Seen != lease.Holding {
		return
	}
	v.Pending = nil
	v.schedule(func() {
		c := v.getter
		in, end := v.Queue.Admitted(c.Mode, a)
		v.Lease, v.getter = &localTurn{Att: a, Ended: end == process.EndedHold}, nil
		c.enter(v.Lease)
		v.letIn(in)
	})
}

func (v *Value) letIn(in []*Caller) {
	for _, c := range in {
		c.grant(&turn{lease: v.Lease})
	}
}

// next passes the task of getting the claim on.
func (v *Value) next(mode process.Mode, try, queued bool) {
	t, a := v.Queue.Next(mode, try, queued), v.Pending
	if !t.Place {
		v.Pending = nil
	}
	if t.Withdraw && a != nil {
		a.leave()
	}
	if t.Any {
		t.To.grant(&turn{place: t.Place})
	}
}

func (v *Value) Unlock(mode process.Mode) process.UnlockOutcome {
	x := v.Queue.Unlock(mode)
	switch x.Do {
	case process.UnlockNotHeld, process.UnlockShared:
		return x.Do
	}
	v.Lease.Ended = true
	switch x.Do {
	case process.UnlockPassed:
		v.renew()
		x.To.grant(&turn{lease: v.Lease})
	case process.UnlockLingers:
		v.lingers(v.Queue.Linger)
	case process.UnlockLeave:
		v.schedule(func() {
			if x.Claim != nil {
				x.Claim.leave()
			}
			v.next(mode, false, false)
		})
	}
	return x.Do
}

func (v *Value) lingers(d time.Duration) {
	if v.timer {
		return
	}
	v.timer = true
	v.Part.Proc.Later(d, func() {
		v.timer = false
		a, again := v.Queue.Lingered()
		if again > 0 {
			v.lingers(again)
		}
		if a != nil {
			a.leave()
		}
	})
}

// tell is what follows for the callers from an event of the claim that they
// share.
func (v *Value) tell(news process.News) {
	if news.Lost() && v.Queue.Ended() == process.EndedHold {
		v.Lease.Ended = true
	}
	if news.Calm {
		v.schedule(func() { v.letIn(v.Queue.Calm()) })
	}
	if news.Waiting {
		v.schedule(func() {
			if l := v.Queue.Waiting(); l != nil {
				l.leave()
			}
		})
	}
}

// HoldState is how the claim stands, as the runtime's core tells.
func (a *Attempt) HoldState() process.HoldState {
	at := a.Now().Add(a.Part.Value.Stall)
	valid := a.Seen == lease.Holding && at < a.Claim.Deadline()
	return process.HoldState{At: at, Valid: valid, Over: a.Seen.Final(), Usable: valid && !a.Mute,
		Waiters: valid && a.Claim.State.Waiters()}
}

// Pass is HoldState of a claim that is handed over if it is usable.
func (a *Attempt) Pass() process.HoldState { return a.passes(a.HoldState()) }

// leave withdraws the claim, held or not.
func (a *Attempt) leave() {
	a.event(func() { a.Claim.Leave(a.Now()) })
}
