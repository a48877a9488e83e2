package localqueue

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/protocol"
)

// Unlock ends one goroutine's hold. It returns the claim if that was released
// on the nodes, and fails with ErrNotHeld, ErrLost or ErrClosed.
func (q *Queue) Unlock(mode Mode) (*core.Hold, error) {
	q.mu.Lock()
	if q.mode != mode || q.shrinking {
		q.mu.Unlock()
		return nil, &core.Failure{Err: core.ErrNotHeld}
	}
	hold := q.hold
	now := hold.Standing()
	if q.readers--; q.readers > 0 {
		lost := q.lease.Lost()
		q.mu.Unlock()
		if lost == nil && !now.Valid {
			lost = core.ErrLost // its timer is just about to tell
		}
		return nil, failure(lost)
	}
	cause := core.ErrReleased
	if !now.Valid {
		cause = core.ErrLost // as above
	}
	lost := q.lease.End(cause)
	switch {
	case lost != nil:
	case len(q.queue) > 0 && mode == Write && q.queue[0].mode == Write && q.pass():
		q.readers = 1
		w := q.pop()
		q.mu.Unlock()
		w.turn <- turn{locked: true}
		return nil, nil
	case len(q.queue) == 0 && q.set().Linger > 0 && now.Usable && !now.Waiters:
		q.mode = idle
		q.linger(now.At)
		q.mu.Unlock()
		return nil, nil
	}
	// Not idle yet, so nobody else touches the claim; and released before the
	// next local waiter joins, which would otherwise queue behind its own process.
	q.mode, q.hold, q.lease = getting, nil, nil
	q.mu.Unlock()
	// Also after a loss: an answer from just before the deadline may have renewed
	// the claim since it was looked at, and it would be renewed as long as the
	// process lives. On a claim that has ended Release does nothing.
	defer q.next(mode, nil) // also when the observer panics
	hold.Release()
	if lost != nil {
		return nil, failure(lost)
	}
	return hold, nil
}

func failure(lost error) error {
	if lost == nil {
		return nil
	}
	return &core.Failure{Err: lost}
}

// pass makes the claim on the nodes serve one more holder of this process,
// a writer with the next token, unless it may not.
func (q *Queue) pass() bool {
	if q.n+1 >= core.MaxPasses {
		return false
	}
	now := q.hold.Pass()
	if now.Waiters {
		if q.passes == 0 {
			q.since = now.At
		}
		if q.passes++; q.passes > maxPasses || now.At.Sub(q.since) > q.set().TTL/passShare {
			return false
		}
	}
	if !now.Usable {
		return false
	}
	if q.kind == Write {
		q.n++
	}
	if q.leaseExposed {
		q.lease, q.leaseExposed = q.hold.Lease(int(q.n)), false
	} else {
		q.lease.Again(int(q.n))
	}
	return true
}

// Downgrade makes the writer a reader without a gap: its claim keeps its
// place and only gets lighter.
func (q *Queue) Downgrade() error {
	q.mu.Lock()
	if q.mode != Write || q.shrinking {
		q.mu.Unlock()
		return &core.Failure{Err: core.ErrNotHeld}
	}
	hold := q.hold
	q.shrinking = true
	q.mu.Unlock()
	// Without q.mu, because the claim may turn out to be lost, which Ended is
	// told. Invariant: while q.shrinking, no Unlock changes the mode. An Unlock by
	// mistake would pass the claim on to another writer, whose claim would then
	// become that of a reader.
	shrunk := hold.Shrink(q.read.Weight)
	q.mu.Lock()
	q.shrinking = false
	if !shrunk {
		q.mu.Unlock()
		return &core.Failure{Err: core.ErrLost}
	}
	q.mode, q.kind = Read, Read
	turns := q.readersAhead()
	q.mu.Unlock()
	for _, w := range turns {
		w.turn <- turn{locked: true}
	}
	return nil
}

// linger keeps the claim for a while from now on. Called with q.mu held.
func (q *Queue) linger(now protocol.Time) {
	d := q.set().Linger
	q.until = now.Add(d)
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.lingered)
	}
}

// lingered looks whether the time is over. One timer serves any number of
// releases: it sleeps on when there has been another meanwhile.
func (q *Queue) lingered() {
	q.mu.Lock()
	q.timer = nil
	if q.mode != idle || q.hold == nil {
		q.mu.Unlock() // the next release starts another
		return
	}
	if left := q.until.Sub(q.hold.Standing().At); left > 0 {
		q.timer = time.AfterFunc(left, q.lingered)
		q.mu.Unlock()
		return
	}
	q.mu.Unlock()
	q.giveUp()
}

// Waiting is told that somebody waits behind the claim.
func (q *Queue) Waiting() { q.giveUp() }

// giveUp releases a claim that only lingers: somebody else has asked, or the
// time is over.
func (q *Queue) giveUp() {
	q.mu.Lock()
	if q.mode != idle || q.hold == nil {
		q.mu.Unlock()
		return
	}
	hold := q.hold
	q.dropLingering()
	q.mu.Unlock()
	hold.Release()
}

func (q *Queue) dropLingering() {
	q.hold, q.lease = nil, nil
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// Ended is told that a claim has ended by itself. It may be an earlier one.
func (q *Queue) Ended(cause error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.hold == nil || q.hold.Valid():
	case q.mode == idle:
		q.dropLingering()
	case q.lease != nil:
		_ = q.lease.End(cause)
	}
}

// Extend renews the claim now and waits until a majority has done so.
func (q *Queue) Extend(ctx context.Context, mode Mode) error {
	q.mu.Lock()
	hold, held := q.hold, q.mode == mode
	q.mu.Unlock()
	if !held {
		return &core.Failure{Err: core.ErrNotHeld}
	}
	return hold.Renew(ctx)
}

// Lease returns the hold of the goroutine, or the readers, that have it locked
// in this mode; nil if none has.
func (q *Queue) Lease(mode Mode) *core.Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mode != mode {
		return nil
	}
	q.leaseExposed = true
	return q.lease
}

// Holder asks the nodes who holds the name.
func (q *Queue) Holder(ctx context.Context) (core.Holder, error) {
	if q.err != nil {
		return core.Holder{}, q.err
	}
	return q.quorum.Holder(ctx, q.write)
}
