package process

import (
	"time"

	"github.com/quorate/quorate/internal/invariant"
)

// UnlockOutcome says what to do when a caller has unlocked.
type UnlockOutcome uint8

const (
	UnlockNotHeld UnlockOutcome = iota + 1 // nothing: the value is not held in this mode
	UnlockShared                           // nothing: other readers still hold it
	UnlockPassed                           // the next writer holds it, in a turn of its own: see Claim
	UnlockLingers                          // the claim lingers: call Lingered after q.Linger
	UnlockLeave                            // leave the claim, then call Next
)

// LocalUnlock is the result of Unlock.
type LocalUnlock[C any, H SharedClaim] struct {
	Do    UnlockOutcome
	Lost  bool // the claim had already ended
	To    C    // with UnlockPassed: the next writer
	Claim H    // with UnlockLeave: the claim to leave
}

// Unlock ends the hold of one caller, even if it was already lost.
// Invariant: while a Downgrade is in progress no Unlock changes the mode.
func (q *LocalQueue[C, H]) Unlock(mode Mode) (x LocalUnlock[C, H]) {
	if invariant.On {
		defer q.check()
	}
	if q.mode != mode ||
		q.downgrading { //mutant:RuleShrinks
		x.Do = UnlockNotHeld
		return x
	}
	now := q.claim.HoldState()
	x.Lost = !now.Valid
	if q.callers--; q.callers > 0 {
		x.Do = UnlockShared
		return x
	}
	switch {
	case x.Lost: //mutant:RulePassUsable
	case mode == Write && q.firstWants(Write) && q.pass():
		q.callers = 1
		x.Do, x.To = UnlockPassed, q.pop().caller
		return x
	case q.line.Len() == 0 && q.Linger > 0 && now.Usable &&
		!now.Waiters: //mutant:RuleLinger
		q.mode, q.lingersUntil = idle, now.At.Add(q.Linger)
		x.Do = UnlockLingers
		return x
	}
	// The mode is not idle yet: otherwise a caller that came now would queue at
	// the nodes behind the claim of its own process. Leave even a claim that
	// looks lost, because it may just have been renewed (local-lost-left.txt).
	var none H
	x.Do, x.Claim = UnlockLeave, q.claim
	q.mode, q.claim = getting, none
	return x
}

// Waiting records that a claim waits behind the shared one. If the shared claim
// only lingers, it returns that claim, and the caller must leave it.
func (q *LocalQueue[C, H]) Waiting() (leave H) {
	if invariant.On {
		defer q.check()
	}
	if q.mode == idle { //mutant:RuleLinger
		leave = q.drop()
	}
	return leave
}

// Lingered is called when the time to linger may be over. It returns the claim
// to leave, or how long to wait before Lingered is called again, or neither.
func (q *LocalQueue[C, H]) Lingered() (leave H, again time.Duration) {
	if invariant.On {
		defer q.check()
	}
	var none H
	if q.mode != idle || q.claim == none {
		return none, 0
	}
	if left := q.lingersUntil.Sub(q.claim.HoldState().At); left > 0 {
		return none, left // another Unlock has extended the time
	}
	return q.drop(), 0 //mutant:RuleLingerEnd=none, 0
}

// Downgrade begins to make the writer a reader: its claim keeps its place and
// gets the weight of a reader. Downgraded must be called afterwards. It reports
// whether there is a writer.
func (q *LocalQueue[C, H]) Downgrade() (claim H, ok bool) {
	if q.mode != Write || q.downgrading {
		return claim, false
	}
	q.downgrading = true
	return q.claim, true
}

// Downgraded records whether the claim has become lighter; if not, the claim
// was lost. It returns the readers that hold the value now.
func (q *LocalQueue[C, H]) Downgraded(shrunk bool) (in []C) {
	if invariant.On {
		defer q.check()
	}
	if q.downgrading = false; shrunk {
		q.mode, q.claimMode = Read, Read
	}
	return q.readersAhead()
}
