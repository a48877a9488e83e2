package process

import (
	linked "container/list"
	"time"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// The local queue decides which of the callers that share a value in one
// process gets it next, and what happens to the claim that they share.
//
//	       Lock               Admitted
//	idle --------> getting ----------------> held (Write or Read)
//	 ^ ^             ^ |                     | |
//	 | |             | `- Next: the task     | |- Unlock: the next writer holds it
//	 | `-------------|---- goes on, or idle  | |- Unlock: another reader still holds it
//	 |               `- Unlock: it is left --' |
//	 `------------------ Unlock: it lingers ---'
//
// Builds with the tag invariants check them in the method check.
//
// Invariant: at most one caller holds the value for writing, and then no other
// caller holds it.
// Invariant: the claim in LocalQueue has the weight of the mode in which it is
// held.
// Invariant: while callers wait, at least one caller holds the value or is
// getting its claim.
// Invariant: a claim that is neither held nor lingers has been left.
// Invariant: a claim serves another caller only while it is usable. While a
// waiter is known at the nodes, it does so only for a limited time (passShare).

// Mode is how a caller holds a value.
type Mode uint8

const (
	idle    Mode = iota // no caller holds the value; a claim may linger
	getting             // one caller is getting the claim from the nodes, or is giving it back
	Write               // one caller holds the value alone
	Read                // any number of callers hold it together
)

// HandOvers is how many tokens one claim has. The token of its n-th hand-over
// inside the process is ticket·HandOvers + n. A larger n would yield a token of
// another claim.
const HandOvers = 1 << 10

// passShare limits how long the callers of one process may hand a claim to each
// other while another process waits: a 256th of the ttl, 31 ms by default.
const passShare = 256

// HoldState is the state of a claim at one moment.
type HoldState struct {
	At    protocol.Time
	Valid bool // it is held
	// The claim has ended permanently. A claim that is neither valid nor over
	// may still be renewed, by an answer from just before its deadline.
	Over bool
	// The claim is held and still renewed, so it serves another caller as well
	// as a new claim would.
	Usable bool
	// The claims of this value are never renewed automatically, so a reader may
	// as well use the rest of this claim.
	Fixed   bool
	Waiters bool // another process's claim waits behind it
}

// SharedClaim is the claim that the callers share.
type SharedClaim interface {
	comparable
	HoldState() HoldState // its state now
	// Pass returns the current state. If the claim is usable, the time of
	// WithMaxHold starts again for the next caller.
	Pass() HoldState
}

// LocalQueue is the queue of the callers that share a value in one process.
// They have at most one claim at the nodes. Each method is an event and returns
// what must be done. C is the type of a caller. LocalQueue is not safe for
// concurrent use.
type LocalQueue[C any, H SharedClaim] struct {
	TTL    time.Duration
	Linger time.Duration // how long a claim is kept after the last caller has left

	line         linked.List   // of inLine[C]
	claim        H             // the shared claim; while idle it lingers
	lingersUntil protocol.Time // while idle: until when the claim lingers
	waitedSince  protocol.Time // when a waiter at the nodes was first known at a hand-over
	callers      int32         // how many hold the value
	handOvers    uint16        // hand-overs under the claim
	waiterKnown  bool          // waitedSince is set
	mode         Mode          // of the value
	claimMode    Mode          // of the claim: Write or Read
	downgrading  bool          // a Downgrade is in progress
}

// inLine is a caller that waits.
type inLine[C any] struct {
	caller C
	mode   Mode
}

// pop removes the caller that has waited longest, which is next. sync.Mutex
// lets new goroutines overtake waiting ones; that would gain nothing here,
// because a turn costs a round trip.
func (q *LocalQueue[C, H]) pop() inLine[C] {
	next := q.line.Front() //mutant:RuleFirst=q.line.Back()
	return q.line.Remove(next).(inLine[C])
}

// firstWants reports whether callers wait and the first of them wants the mode.
func (q *LocalQueue[C, H]) firstWants(mode Mode) bool {
	first := q.line.Front()
	return first != nil && first.Value.(inLine[C]).mode == mode
}

// LockOutcome tells a caller that wants the value what to do.
type LockOutcome uint8

const (
	LockEntered LockOutcome = iota + 1 // it holds the value, in a turn of its own: see Claim
	LockJoined                         // it holds the value together with other readers, in their turn
	LockGet                            // it must get the claim from the nodes, and then call Admitted or Next
	LockRefused                        // the call is a try, and another caller has the value
	LockWait                           // it must wait: see Wait
)

// Lock tells a caller that wants the value what to do. A try does not wait for
// a turn. With LockGet, before is none, or a claim that is in the way and must
// be left first.
func (q *LocalQueue[C, H]) Lock(mode Mode, try bool) (do LockOutcome, before H) {
	if invariant.On {
		defer q.check()
	}
	var none H
	switch {
	case q.mode == idle:
		// Invariant: a claim serves one mode. A writer that used the claim of a
		// reader would hold the value at the same time as readers of other
		// processes.
		if q.claim != none && q.claimMode == mode && q.pass() {
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

// pass hands the claim to one more caller if it may, and reports whether it
// did. A writer gets the next token.
func (q *LocalQueue[C, H]) pass() bool {
	if q.handOvers+1 >= HandOvers { //mutant:RulePassTokens
		return false
	}
	now := q.claim.Pass()
	if now.Waiters {
		if !q.waiterKnown {
			q.waitedSince, q.waiterKnown = now.At, true
		}
		if now.At.Sub(q.waitedSince) > q.TTL/passShare { //mutant:RulePassTime
			return false
		}
	}
	if !now.Usable { //mutant:RulePassUsable
		return false
	}
	if q.claimMode == Write { //mutant:RulePassToken
		q.handOvers++
	}
	return true
}

// shareable reports whether one more reader may use the claim: only while
// readers hold it, no caller of this process waits, and no claim waits behind
// it at the nodes. Only a writer's claim can wait behind it, and the writer
// would starve if readers kept coming in.
func (q *LocalQueue[C, H]) shareable() bool {
	if q.mode != Read { //mutant:RuleShare=q.mode != Read && q.mode != Write
		return false
	}
	if q.line.Len() > 0 { //mutant:RuleInLine
		return false
	}
	return q.shares()
}

// shares reports whether the claim may serve one more reader at the same time
// as others.
func (q *LocalQueue[C, H]) shares() bool {
	s := q.claim.HoldState()
	return (s.Usable || s.Valid && s.Fixed) &&
		!s.Waiters //mutant:RuleReadersYield
}

// Wait queues a caller for which Lock returned LockWait. It returns the place
// for GiveUp.
func (q *LocalQueue[C, H]) Wait(c C, mode Mode) *linked.Element {
	if invariant.On {
		defer q.check()
	}
	return q.line.PushBack(inLine[C]{c, mode})
}

// Waiters reports whether callers wait.
func (q *LocalQueue[C, H]) Waiters() bool { return q.line.Len() > 0 }

// GiveUp removes a caller that no longer wants to wait from the queue. It
// reports whether the caller was still in the queue. If not, its turn has just
// come, and the caller must give the turn back at once, by Unlock or Next. If
// the caller was a writer ahead of readers, GiveUp returns the readers that now
// hold the value.
//
// GiveUp takes constant time, however many callers wait.
func (q *LocalQueue[C, H]) GiveUp(place *linked.Element) (in []C, ok bool) {
	if invariant.On {
		defer q.check()
	}
	n := q.line.Len()
	q.line.Remove(place)
	ok = q.line.Len() < n
	return q.Calm(), ok
}

// Calm records that a claim that waited behind the shared one may be gone. It
// returns the readers that waited because of it and hold the value now.
func (q *LocalQueue[C, H]) Calm() (in []C) {
	if q.mode == Read && q.line.Len() > 0 && q.shares() {
		in = q.readersAhead()
	}
	return in
}

// Admitted records that the claim that a caller got is held, in the mode of
// that caller. It returns the readers at the head of the queue, which hold the
// value too. If the claim had ended before Admitted was called, end is what
// Ended returns.
func (q *LocalQueue[C, H]) Admitted(mode Mode, claim H) (in []C, end EndOutcome) {
	if invariant.On {
		defer q.check()
	}
	q.mode, q.claimMode, q.callers = mode, mode, 1
	q.claim, q.handOvers, q.waiterKnown = claim, 0, false
	return q.readersAhead(), q.Ended()
}

// readersAhead removes the readers at the head of the queue, if readers hold the
// value, and counts them as callers that hold it.
func (q *LocalQueue[C, H]) readersAhead() (in []C) {
	for q.mode == Read && q.firstWants(Read) {
		in = append(in, q.pop().caller)
		q.callers++
	}
	return in
}

// EndOutcome says what the end of a claim means for the callers.
type EndOutcome uint8

const (
	EndedEarlier EndOutcome = iota // nothing: it was an earlier claim, or one that q does not know yet
	EndedLinger                    // the claim that lingered is gone
	EndedHold                      // the callers that hold the value must learn that they have lost it
)

// Ended records that a claim has ended on its own. It may be an earlier claim.
// Invariant: no caller learns of a loss while the claim continues. Readers that
// come in later would otherwise share a turn that has ended.
func (q *LocalQueue[C, H]) Ended() EndOutcome {
	if invariant.On {
		defer q.check()
	}
	var none H
	switch {
	case q.claim == none || !q.claim.HoldState().Over:
		return EndedEarlier
	case q.mode == idle:
		q.drop()
		return EndedLinger
	}
	return EndedHold //mutant:RuleLostHolders=EndedEarlier
}

// drop forgets the claim and returns it.
func (q *LocalQueue[C, H]) drop() (claim H) {
	claim, q.claim = q.claim, claim
	return claim
}

// LocalTask says what to do after an attempt or a claim has ended.
type LocalTask[C any] struct {
	To       C    // the caller that must get the claim from the nodes, if Any
	Any      bool // there is such a caller
	Place    bool // it continues the attempt that is queued at the nodes
	Withdraw bool // that attempt must be withdrawn
}

// Next records that the caller that was getting the claim has failed or has
// given up, or that the claim has been given back. The next caller gets the
// task. If an attempt is still queued at the nodes and that caller wants the
// same mode, it takes over the attempt. The attempt of a try is of no use to
// another caller.
func (q *LocalQueue[C, H]) Next(mode Mode, try, queued bool) (t LocalTask[C]) {
	if invariant.On {
		defer q.check()
	}
	if q.mode = idle; q.line.Len() > 0 { //mutant:RuleNext
		w := q.pop()
		q.mode, t.To, t.Any = getting, w.caller, true
		t.Place = queued && !try &&
			w.mode == mode //mutant:RulePlaceMode
	}
	t.Withdraw = queued && !t.Place //mutant:RulePlaceLeft
	return t
}

// Claim returns the claim, and the number of the current turn under it, from
// which its token is computed.
func (q *LocalQueue[C, H]) Claim() (claim H, n int) { return q.claim, int(q.handOvers) }

// Held returns the claim if callers hold the value in the given mode, otherwise
// none.
func (q *LocalQueue[C, H]) Held(mode Mode) (claim H) {
	if q.mode == mode {
		claim = q.claim
	}
	return claim
}
