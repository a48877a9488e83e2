package party

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/protocol"
)

// Unlock ends one goroutine's hold. It returns the claim if that was released
// on the nodes, and fails with ErrNotHeld, ErrLost or ErrClosed.
func (p *Party) Unlock(mode Mode) (*core.Hold, error) {
	p.mu.Lock()
	if p.mode != mode || p.shrinking {
		p.mu.Unlock()
		return nil, &core.Failure{Err: core.ErrNotHeld}
	}
	hold := p.hold
	now := hold.Standing()
	if p.readers--; p.readers > 0 {
		lost := p.grant.Lost()
		p.mu.Unlock()
		if lost == nil && !now.Valid {
			lost = core.ErrLost // its timer is just about to tell
		}
		return nil, failure(lost)
	}
	cause := core.ErrReleased
	if !now.Valid {
		cause = core.ErrLost // as above
	}
	lost := p.grant.End(cause)
	switch {
	case lost != nil:
	case len(p.queue) > 0 && mode == Write && p.queue[0].mode == Write && p.pass():
		p.readers = 1
		w := p.pop()
		p.mu.Unlock()
		w.turn <- turn{locked: true}
		return nil, nil
	case len(p.queue) == 0 && p.set().Linger > 0 && now.Usable && !now.Waiters:
		p.mode = idle
		p.linger(now.At)
		p.mu.Unlock()
		return nil, nil
	}
	// Not idle yet, so nobody else touches the claim; and released before the
	// next local waiter joins, which would otherwise queue behind its own process.
	p.mode, p.hold, p.grant = getting, nil, nil
	p.mu.Unlock()
	// Also after a loss: an answer from just before the deadline may have renewed
	// the claim since it was looked at, and it would be renewed as long as the
	// process lives. On a claim that has ended Release does nothing.
	defer p.next(mode, nil) // also when the observer panics
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
func (p *Party) pass() bool {
	if p.n+1 >= core.MaxPasses {
		return false
	}
	now := p.hold.Pass()
	if now.Waiters {
		if p.passes == 0 {
			p.since = now.At
		}
		if p.passes++; p.passes > maxPasses || now.At.Sub(p.since) > p.set().TTL/passShare {
			return false
		}
	}
	if !now.Usable {
		return false
	}
	if p.kind == Write {
		p.n++
	}
	if p.given {
		p.grant, p.given = p.hold.Lease(int(p.n)), false
	} else {
		p.grant.Again(int(p.n))
	}
	return true
}

// Downgrade makes the writer a reader without a gap: its claim keeps its
// place and only gets lighter.
func (p *Party) Downgrade() error {
	p.mu.Lock()
	if p.mode != Write || p.shrinking {
		p.mu.Unlock()
		return &core.Failure{Err: core.ErrNotHeld}
	}
	hold := p.hold
	p.shrinking = true
	p.mu.Unlock()
	// Without p.mu, because the claim may turn out to be lost, which Ended is
	// told. Invariant: while p.shrinking, no Unlock changes the mode. An Unlock by
	// mistake would pass the claim on to another writer, whose claim would then
	// become that of a reader.
	shrunk := hold.Shrink(p.read.Weight)
	p.mu.Lock()
	p.shrinking = false
	if !shrunk {
		p.mu.Unlock()
		return &core.Failure{Err: core.ErrLost}
	}
	p.mode, p.kind = Read, Read
	turns := p.readersAhead()
	p.mu.Unlock()
	for _, w := range turns {
		w.turn <- turn{locked: true}
	}
	return nil
}

// linger keeps the claim for a while from now on. Called with p.mu held.
func (p *Party) linger(now protocol.Time) {
	d := p.set().Linger
	p.until = now.Add(d)
	if p.timer == nil {
		p.timer = time.AfterFunc(d, p.lingered)
	}
}

// lingered looks whether the time is over. One timer serves any number of
// releases: it sleeps on when there has been another meanwhile.
func (p *Party) lingered() {
	p.mu.Lock()
	p.timer = nil
	if p.mode != idle || p.hold == nil {
		p.mu.Unlock() // the next release starts another
		return
	}
	if left := p.until.Sub(p.hold.Standing().At); left > 0 {
		p.timer = time.AfterFunc(left, p.lingered)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.giveUp()
}

// Waiting is told that somebody waits behind the claim.
func (p *Party) Waiting() { p.giveUp() }

// giveUp releases a claim that only lingers: somebody else has asked, or the
// time is over.
func (p *Party) giveUp() {
	p.mu.Lock()
	if p.mode != idle || p.hold == nil {
		p.mu.Unlock()
		return
	}
	hold := p.hold
	p.dropLingering()
	p.mu.Unlock()
	hold.Release()
}

func (p *Party) dropLingering() {
	p.hold, p.grant = nil, nil
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// Ended is told that a claim has ended by itself. It may be an earlier one.
func (p *Party) Ended(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.hold == nil || p.hold.Valid():
	case p.mode == idle:
		p.dropLingering()
	case p.grant != nil:
		_ = p.grant.End(cause)
	}
}

// Extend renews the claim now and waits until a majority has done so.
func (p *Party) Extend(ctx context.Context, mode Mode) error {
	p.mu.Lock()
	hold, held := p.hold, p.mode == mode
	p.mu.Unlock()
	if !held {
		return &core.Failure{Err: core.ErrNotHeld}
	}
	return hold.Renew(ctx)
}

// Lease returns the hold of the goroutine, or the readers, that have it locked
// in this mode; nil if none has.
func (p *Party) Lease(mode Mode) *core.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode != mode {
		return nil
	}
	p.given = true
	return p.grant
}

// Holder asks the nodes who holds the name.
func (p *Party) Holder(ctx context.Context) (core.Holder, error) {
	if p.err != nil {
		return core.Holder{}, p.err
	}
	return p.q.Holder(ctx, p.write)
}
