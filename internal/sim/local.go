package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
)

// value is what callers of one process share: a local queue, and the
// participant whose claims it uses. It does for process.LocalQueue what
// package localqueue does for it in production; where that unlocks, or where a
// goroutine wakes, other events may come between here too.
type value struct {
	t       *participant
	queue   process.LocalQueue[*caller, *attempt]
	callers []*caller
	lease   *localTurn    // of the turn under way, or of the last one
	pending *attempt      // what the getter gets
	getter  *caller       // nil: no caller has run yet that goes on with it
	timer   bool          // Lingered is going to be called
	stall   time.Duration // how much later than the claim's an Unlock reads the clock
	lines   int           // counts the callers that waited
	turns   int
	kept    moment // since when a reader waits that need not; 0: none does
}

// localTurn is one turn under a claim.
type localTurn struct {
	a     *attempt
	n     int
	ended bool // the callers have learned that it is over
}

func (l *localTurn) token() uint64 { return uint64(l.a.Ticket())*process.HandOvers + uint64(l.n) }

func newValue(t *participant) *value {
	w := t.proc.w
	v := &value{t: t}
	v.queue.TTL, v.queue.Linger, v.queue.Rules = t.proc.w.ttl, w.linger, w.rules
	for i := range w.callers {
		v.callers = append(v.callers, &caller{v: v, name: fmt.Sprintf("%s/%d", t.name, i)})
	}
	return v
}

// rename gives the callers their names in a trace.
func (v *value) rename() {
	for i, c := range v.callers {
		c.name = fmt.Sprintf("%s/%d", v.t.label(), i+1)
	}
}

// idle: no caller holds or wants anything, and the claim does not linger.
func (v *value) idle() bool {
	for _, c := range v.callers {
		if c.doing != resting {
			return false
		}
	}
	return v.t.att == nil
}

func (v *value) loop() {
	for _, c := range v.callers {
		c.auto = true
		c.rest()
	}
}

// drain: a holder holds for no longer than usual.
func (v *value) drain() {
	for _, c := range v.callers {
		if c.doing == holding && c.keeps {
			c.unlockLater()
		}
	}
}

// schedule is when a goroutine runs that could run now.
func (v *value) schedule(fn func()) {
	w := v.t.proc.w
	d := w.wakes
	if w.wire == nil && w.rng.IntN(4) == 0 {
		d = time.Duration(w.rng.Int64N(int64(w.delay)))
	}
	v.t.proc.later(d, fn)
}

// renew makes the lease of the turn under way.
func (v *value) renew() {
	a, n := v.queue.Claim()
	v.lease = &localTurn{a: a, n: n}
}

// progress looks what has become of the attempt that the getter waits for.
func (v *value) progress() {
	a, c := v.pending, v.getter
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
		v.getter, v.pending = nil, nil
		c.rest()
		v.next(c.mode, c.try, false)
	}
}

// take: the getter finds the claim admitted.
func (v *value) take(a *attempt) {
	if v.pending != a {
		return
	}
	a.event(func() { a.Take(a.local()) })
	if v.pending != a || a.phase != lease.Holding {
		return
	}
	v.pending = nil
	v.schedule(func() {
		c := v.getter
		in, end := v.queue.Admitted(c.mode, a)
		v.lease, v.getter = &localTurn{a: a, ended: end == process.EndedHold}, nil
		c.enter(v.lease)
		v.letIn(in)
	})
}

func (v *value) letIn(in []*caller) {
	for _, c := range in {
		c.grant(&turn{lease: v.lease})
	}
}

// next passes the task of getting the claim on.
func (v *value) next(mode process.Mode, try, queued bool) {
	t, a := v.queue.Next(mode, try, queued), v.pending
	if !t.Place {
		v.pending = nil
	}
	if t.Withdraw && a != nil {
		a.leave()
	}
	if t.Any {
		t.To.grant(&turn{place: t.Place})
	}
}

func (v *value) unlock(mode process.Mode) process.UnlockOutcome {
	x := v.queue.Unlock(mode)
	switch x.Do {
	case process.UnlockNotHeld, process.UnlockShared:
		return x.Do
	}
	v.lease.ended = true
	switch x.Do {
	case process.UnlockPassed:
		v.renew()
		x.To.grant(&turn{lease: v.lease})
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
	v.t.proc.later(d, func() {
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
		v.lease.ended = true
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
func (a *attempt) Standing() process.Standing {
	at := a.local().Add(a.part.value.stall)
	valid := a.phase == lease.Holding && at < a.Deadline()
	return process.Standing{At: at, Valid: valid, Usable: valid && !a.mute, Waiters: valid && a.Waiters()}
}

// Pass is Standing of a claim that is handed over if it is usable.
func (a *attempt) Pass() process.Standing { return a.passes(a.Standing()) }

// leave withdraws the claim, held or not.
func (a *attempt) leave() {
	a.event(func() { a.Leave(a.local()) })
}
