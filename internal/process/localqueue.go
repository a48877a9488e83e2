package process

import (
	linked "container/list"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns the local queue: which of the callers of one process that
// share a value holds it next, and what becomes of the claim that they share.
//
//	       Lock               Admitted
//	idle --------> getting ----------------> held (Write or Read)
//	 ^ ^             ^ |                     | |
//	 | |             | `- Next: the task     | |- Unlock: the next writer holds it
//	 | `-------------|---- goes on, or idle  | |- Unlock: another reader still holds it
//	 |               `- Unlock: it is left --' |
//	 `------------------ Unlock: it lingers ---'
//
// Invariant: at most one caller holds the value for writing, and none beside
// it.
// Invariant: the claim in LocalQueue has the weight of the mode in which it is
// held.
// Invariant: while callers wait, one caller holds the value or gets its claim.
// Invariant: a claim that is neither held nor lingers has been left.
// Invariant: a claim serves another caller only while it is usable, and while a
// waiter is known at the nodes only for so long.

// Mode is how a caller holds a value.
type Mode uint8

const (
	idle    Mode = iota // no caller holds the value; its claim may linger
	getting             // one caller gets the claim from the nodes, or gives it back to them
	Write               // one caller holds the value alone
	Read                // any number of callers hold it together
)

// HandOvers is how many tokens one claim has. The token of its n-th hand-over
// inside the process is ticket·HandOvers + n. With a larger n it would be the
// token of another claim.
const HandOvers = 1 << 10

// passShare: while a waiter is known at the nodes, the callers of one process
// hand a claim over for such a part of the ttl at most, 31 ms with the default.
const passShare = 256

// Standing is how a claim stands at one moment.
type Standing struct {
	At      protocol.Time
	Valid   bool // it is held
	Over    bool // it has ended for good: one that is not valid may be renewed yet, by an answer from just before its deadline
	Usable  bool // and goes on being renewed, so it can serve another caller of this process as a fresh one would
	Fixed   bool // no claim of this value is renewed by itself, so a fresh one is no better for a reader than what is left of this
	Waiters bool // a claim is known to wait behind it
}

// SharedClaim is the claim that the callers share.
type SharedClaim interface {
	comparable
	Standing() Standing // how it stands now
	Pass() Standing     // likewise; if it is usable, the time for which a caller may hold it starts again
}

// LocalQueue is the callers of one process that share a value, of which one
// claim at most is at the nodes. Each method is an event, and returns what is
// to be done. C is a caller. LocalQueue is not safe for concurrent use.
type LocalQueue[C any, H SharedClaim] struct {
	TTL    time.Duration
	Linger time.Duration // how long a claim is kept after the last caller

	line    linked.List   // of inLine[C]
	claim   H             // while idle it lingers
	until   protocol.Time // idle: it lingers until then
	since   protocol.Time // when a waiter at the nodes was first known at a hand-over
	callers int32         // that hold the value
	n       uint16        // hand-overs under the claim
	waited  bool          // since is set
	mode    Mode          // of the value
	kind    Mode          // of the claim: Write or Read
	shrinks bool          // a Downgrade is under way
}

// inLine is a caller that waits.
type inLine[C any] struct {
	caller C
	mode   Mode
}

// pop takes out the caller that has waited for longest: it is next. Unlike with
// sync.Mutex there is nothing to gain from overtaking: a turn costs a round
// trip.
func (q *LocalQueue[C, H]) pop() inLine[C] {
	next := q.line.Front() //mutant:RuleFirst=q.line.Back()
	return q.line.Remove(next).(inLine[C])
}

// firstWants reports whether callers wait, and the first one for the mode.
func (q *LocalQueue[C, H]) firstWants(mode Mode) bool {
	first := q.line.Front()
	return first != nil && first.Value.(inLine[C]).mode == mode
}

// LockOutcome is what a caller does that wants the value.
type LockOutcome uint8

const (
	LockEntered LockOutcome = iota + 1 // it holds the value, in a turn of its own: see Claim
	LockJoined                         // it holds the value beside other readers, in their turn
	LockGet                            // it gets the claim from the nodes, and reports Admitted or Next
	LockRefused                        // it does not wait, and another caller has the value
	LockWait                           // it waits: see Wait
)

// Lock is a caller that wants the value. A try does not wait for a turn. The
// claim before, if there is one, is in the way of LockGet and is left first.
func (q *LocalQueue[C, H]) Lock(mode Mode, try bool) (do LockOutcome, before H) {
	var none H
	switch {
	case q.mode == idle:
		// Invariant: a claim serves one mode. A writer under the claim of a
		// reader would hold the value beside the readers of other processes.
		if q.claim != none && q.kind == mode && q.pass() {
			q.mode, q.callers = mode, 1
			return LockEntered, none
		}
		before = q.claim //mutant:RuleLingerMode
		q.mode, q.claim = getting, none
		return LockGet, before
	case mode == Read && q.shareable():
		q.callers++
		return LockJoined, none
	case try:
		return LockRefused, none
	}
	return LockWait, none
}

// pass makes the claim serve one more caller, a writer with the next token,
// unless it may not.
func (q *LocalQueue[C, H]) pass() bool {
	if q.n+1 >= HandOvers { //mutant:RulePassTokens
		return false
	}
	now := q.claim.Pass()
	if now.Waiters {
		if !q.waited {
			q.since, q.waited = now.At, true
		}
		if now.At.Sub(q.since) > q.TTL/passShare { //mutant:RulePassTime
			return false
		}
	}
	if !now.Usable { //mutant:RulePassUsable
		return false
	}
	if q.kind == Write { //mutant:RulePassToken
		q.n++
	}
	return true
}

// shareable reports whether one more reader may come in under the claim: beside
// readers only, behind every caller that waits, and not while a claim waits
// behind this one at the nodes. That can only be a writer's. Readers that went
// on coming would starve either writer.
func (q *LocalQueue[C, H]) shareable() bool {
	if q.mode != Read { //mutant:RuleShare=q.mode != Read && q.mode != Write
		return false
	}
	if q.line.Len() > 0 { //mutant:RuleInLine
		return false
	}
	return q.shares()
}

// shares reports whether the claim may serve one more reader beside others.
func (q *LocalQueue[C, H]) shares() bool {
	s := q.claim.Standing()
	return (s.Usable || s.Valid && s.Fixed) &&
		!s.Waiters //mutant:RuleReadersYield
}

// Wait queues a caller that Lock has told to. It returns the place for GiveUp.
func (q *LocalQueue[C, H]) Wait(c C, mode Mode) *linked.Element {
	return q.line.PushBack(inLine[C]{c, mode})
}

// Waiters reports whether callers wait.
func (q *LocalQueue[C, H]) Waiters() bool { return q.line.Len() > 0 }

// GiveUp takes a caller that no longer wants to wait out of the queue. It
// reports whether the caller was there. If not, its turn has come at the same
// time, and it gives that back at once, by Unlock or Next. GiveUp returns the
// readers that come in: a writer was before them.
// Invariant: it takes as long whatever the number of those that wait.
func (q *LocalQueue[C, H]) GiveUp(place *linked.Element) (in []C, ok bool) {
	n := q.line.Len()
	q.line.Remove(place)
	ok = q.line.Len() < n
	return q.Calm(), ok
}

// Calm says that no claim may wait behind the shared one any more. It returns
// the readers that come in, which have waited because of it.
func (q *LocalQueue[C, H]) Calm() (in []C) {
	if q.mode == Read && q.line.Len() > 0 && q.shares() {
		in = q.readersAhead()
	}
	return in
}

// Admitted says that the claim that a caller has got is held, in that caller's
// mode. Readers at the head of the queue come in too. The claim may have ended
// before q knew it: then the end is what Ended returns.
func (q *LocalQueue[C, H]) Admitted(mode Mode, claim H) (in []C, end EndOutcome) {
	q.mode, q.kind, q.callers = mode, mode, 1
	q.claim, q.n, q.waited = claim, 0, false
	return q.readersAhead(), q.Ended()
}

func (q *LocalQueue[C, H]) readersAhead() (in []C) {
	for q.mode == Read && q.firstWants(Read) {
		in = append(in, q.pop().caller)
		q.callers++
	}
	return in
}

// EndOutcome is what the end of a claim means.
type EndOutcome uint8

const (
	EndedEarlier EndOutcome = iota // nothing: it was an earlier claim, or q does not know it yet
	EndedLinger                    // the claim that lingered is gone
	EndedHold                      // the callers that hold the value learn that they have lost it
)

// Ended says that a claim has ended by itself. It may be an earlier one.
// Invariant: no caller learns of a loss while the claim goes on. Readers that
// come in later would share a turn that has ended.
func (q *LocalQueue[C, H]) Ended() EndOutcome {
	var none H
	switch {
	case q.claim == none || !q.claim.Standing().Over:
		return EndedEarlier
	case q.mode == idle:
		q.drop()
		return EndedLinger
	}
	return EndedHold //mutant:RuleLostHolders=EndedEarlier
}

func (q *LocalQueue[C, H]) drop() (claim H) {
	claim, q.claim = q.claim, claim
	return claim
}

// LocalTask is what is to be done after an attempt, or a claim, has ended.
type LocalTask[C any] struct {
	To       C    // this caller gets the claim from the nodes
	Any      bool // there is such a caller
	Place    bool // it goes on with the attempt that is queued there
	Withdraw bool // that attempt is withdrawn
}

// Next says that the caller that was to get the claim for mode has failed or
// has given up, or that the claim has been given back. The next caller gets the
// task, and the place of an attempt that is still queued at the nodes if it
// wants the same mode. That of a try is good for no other caller.
func (q *LocalQueue[C, H]) Next(mode Mode, try, queued bool) (t LocalTask[C]) {
	if q.mode = idle; q.line.Len() > 0 { //mutant:RuleNext
		w := q.pop()
		q.mode, t.To, t.Any = getting, w.caller, true
		t.Place = queued && !try &&
			w.mode == mode //mutant:RulePlaceMode
	}
	t.Withdraw = queued && !t.Place //mutant:RulePlaceLeft
	return t
}

// Claim returns the claim, and which turn under it is under way: n of its
// token.
func (q *LocalQueue[C, H]) Claim() (claim H, n int) { return q.claim, int(q.n) }

// Held returns the claim if callers hold the value in the mode, else none.
func (q *LocalQueue[C, H]) Held(mode Mode) (claim H) {
	if q.mode == mode {
		claim = q.claim
	}
	return claim
}

// Downgrade begins to make the writer a reader: its claim keeps its place and
// gets as light as a reader's. Then Downgraded is called. It reports whether
// there is a writer.
func (q *LocalQueue[C, H]) Downgrade() (claim H, ok bool) {
	if q.mode != Write || q.shrinks {
		return claim, false
	}
	q.shrinks = true
	return q.claim, true
}

// Downgraded says whether the claim has become lighter; if not, it was lost. It
// returns the readers that come in.
func (q *LocalQueue[C, H]) Downgraded(shrunk bool) (in []C) {
	if q.shrinks = false; shrunk {
		q.mode, q.kind = Read, Read
	}
	return q.readersAhead()
}
