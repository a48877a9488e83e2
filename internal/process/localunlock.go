package process

import (
	"time"
)

// This file owns what becomes of the shared claim once a caller gives the value
// back: it goes to the next caller, lingers for one that may come, or is left.

// UnlockOutcome is what is to be done when a caller has unlocked.
type UnlockOutcome uint8

const (
	UnlockNotHeld UnlockOutcome = iota + 1 // nothing: the value is not held in this mode
	UnlockShared                           // nothing: other readers hold it
	UnlockPassed                           // the next writer holds it, in a turn of its own: see Claim
	UnlockLingers                          // the claim lingers: Lingered is called after q.Linger
	UnlockLeave                            // the claim is left, and then Next is called
)

type LocalUnlock[C any, H SharedClaim] struct {
	Do    UnlockOutcome
	Lost  bool // the claim had ended before
	To    C    // of UnlockPassed
	Claim H    // of UnlockLeave
}

// Unlock ends one caller's hold. A hold that was lost is ended by Unlock too.
// Invariant: while a Downgrade is under way no Unlock changes the mode.
func (q *LocalQueue[C, H]) Unlock(mode Mode) (x LocalUnlock[C, H]) {
	if q.mode != mode ||
		q.shrinks { //mutant:RuleShrinks
		x.Do = UnlockNotHeld
		return x
	}
	now := q.claim.Standing()
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
		q.mode, q.until = idle, now.At.Add(q.Linger)
		x.Do = UnlockLingers
		return x
	}
	// Not idle yet: a caller that came now would queue at the nodes behind the
	// claim of its own process. A claim that looks lost is left too: it may
	// have been renewed just then (local-lost-left.txt).
	var none H
	x.Do, x.Claim = UnlockLeave, q.claim
	q.mode, q.claim = getting, none
	return x
}

// Waiting says that a claim waits behind the shared one. A claim that only
// lingers is left.
func (q *LocalQueue[C, H]) Waiting() (leave H) {
	if q.mode == idle { //mutant:RuleLinger
		leave = q.drop()
	}
	return leave
}

// Lingered says that the time may be over for which the claim lingers. It
// returns the claim that is left, or after how long Lingered is to be called
// again, or neither.
func (q *LocalQueue[C, H]) Lingered() (leave H, again time.Duration) {
	var none H
	if q.mode != idle || q.claim == none {
		return none, 0
	}
	if left := q.until.Sub(q.claim.Standing().At); left > 0 {
		return none, left // there has been another Unlock
	}
	return q.drop(), 0 //mutant:RuleLingerEnd=none, 0
}
