package world

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/sim/course"
)

// value is what callers of one process share: a local queue, and the
// participant whose claims it uses. It does for process.LocalQueue what
// package localqueue does for it in production; where that unlocks, or where a
// goroutine wakes, other events may come between here too.
type value struct {
	t       *Participant
	queue   process.LocalQueue[*Caller, *Attempt]
	Callers []*Caller
	Lease   *localTurn    // of the turn under way, or of the last one
	Pending *Attempt      // what the getter gets
	Getter  *Caller       // nil: no caller has run yet that goes on with it
	timer   bool          // Lingered is going to be called
	Stall   time.Duration // how much later than the claim's an Unlock reads the clock
	lines   int           // counts the callers that waited
	Turns   int
	kept    course.Moment // since when a reader waits that need not; 0: none does
}

// localTurn is one turn under a claim.
type localTurn struct {
	a     *Attempt
	N     int
	ended bool // the callers have learned that it is over
}

func (l *localTurn) token() uint64 { return uint64(l.a.Ticket())*process.HandOvers + uint64(l.N) }

func newValue(t *Participant) *value {
	w := t.Proc.World
	v := &value{t: t}
	v.queue.TTL, v.queue.Linger, v.queue.Rules = t.Proc.World.TTL, w.Linger, w.Rules
	for i := range w.Callers {
		v.Callers = append(v.Callers, &Caller{Value: v, Name: fmt.Sprintf("%s/%d", t.Name, i)})
	}
	return v
}

// Rename gives the callers their names in a trace.
func (v *value) Rename() {
	for i, c := range v.Callers {
		c.Name = fmt.Sprintf("%s/%d", v.t.Label(), i+1)
	}
}

// idle: no caller holds or wants anything, and the claim does not linger.
func (v *value) idle() bool {
	for _, c := range v.Callers {
		if c.Doing != Resting {
			return false
		}
	}
	return v.t.Att == nil
}

func (v *value) Loop() {
	for _, c := range v.Callers {
		c.Auto = true
		c.Rest()
	}
}

// drain: a holder holds for no longer than usual.
func (v *value) drain() {
	for _, c := range v.Callers {
		if c.Doing == Holding && c.Keeps {
			c.unlockLater()
		}
	}
}

// schedule is when a goroutine runs that could run now.
func (v *value) schedule(fn func()) {
	w := v.t.Proc.World
	d := w.Wakes
	if w.Wire == nil && w.RNG.IntN(4) == 0 {
		d = time.Duration(w.RNG.Int64N(int64(w.Delay)))
	}
	v.t.Proc.Later(d, fn)
}

// renew makes the lease of the turn under way.
func (v *value) renew() {
	a, n := v.queue.Claim()
	v.Lease = &localTurn{a: a, N: n}
}

// progress looks what has become of the attempt that the getter waits for.
func (v *value) progress() {
	a, c := v.Pending, v.Getter
	if a == nil || c == nil {
		return
	}
	switch a.phase {
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
		v.Getter, v.Pending = nil, nil
		c.Rest()
		v.next(c.mode, c.try, false)
	}
}

// take: the getter finds the claim admitted.
func (v *value) take(a *Attempt) {
	if v.Pending != a {
		return
	}
	a.event(func() { a.Take(a.Local()) })
	if v.Pending != a || a.phase != lease.Holding {
		return
	}
	v.Pending = nil
	v.schedule(func() {
		c := v.Getter
		in, end := v.queue.Admitted(c.mode, a)
		v.Lease, v.Getter = &localTurn{a: a, ended: end == process.EndedHold}, nil
		c.enter(v.Lease)
		v.letIn(in)
	})
}

func (v *value) letIn(in []*Caller) {
	for _, c := range in {
		c.grant(&turn{lease: v.Lease})
	}
}

// next passes the task of getting the claim on.
func (v *value) next(mode process.Mode, try, queued bool) {
	t, a := v.queue.Next(mode, try, queued), v.Pending
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

func (v *value) Unlock(mode process.Mode) process.UnlockOutcome {
	x := v.queue.Unlock(mode)
	switch x.Do {
	case process.UnlockNotHeld, process.UnlockShared:
		return x.Do
	}
	v.Lease.ended = true
	switch x.Do {
	case process.UnlockPassed:
		v.renew()
		x.To.grant(&turn{lease: v.Lease})
	case process.UnlockLingers:
		v.lingers(v.queue.Linger)
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

func (v *value) lingers(d time.Duration) {
	if v.timer {
		return
	}
	v.timer = true
	v.t.Proc.Later(d, func() {
		v.timer = false
		a, again := v.queue.Lingered()
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
func (v *value) tell(news process.News) {
	if news.Lost() && v.queue.Ended() == process.EndedHold {
		v.Lease.ended = true
	}
	if news.Calm {
		v.schedule(func() { v.letIn(v.queue.Calm()) })
	}
	if news.Waiting {
		v.schedule(func() {
			if l := v.queue.Waiting(); l != nil {
				l.leave()
			}
		})
	}
}

// Standing is how the claim stands, as the runtime's core tells.
func (a *Attempt) Standing() process.Standing {
	at := a.Local().Add(a.Part.Value.Stall)
	valid := a.phase == lease.Holding && at < a.Deadline()
	return process.Standing{At: at, Valid: valid, Usable: valid && !a.Mute, Waiters: valid && a.Waiters()}
}

// Pass is Standing of a claim that is handed over if it is usable.
func (a *Attempt) Pass() process.Standing { return a.passes(a.Standing()) }

// leave withdraws the claim, held or not.
func (a *Attempt) leave() {
	a.event(func() { a.Leave(a.Local()) })
}
