// Package party is one participant of the quorum protocol: the goroutines of a
// process that share one value of a primitive. They queue here, first come
// first served, pass a claim on between them without a round trip, and share
// a claim where they only read.
package party

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/protocol"
)

// Mode is how a claim is held.
type Mode uint8

// The modes of a Party.
const (
	idle    Mode = iota // nobody holds it; a claim may linger
	getting             // a goroutine is getting it from the nodes
	Write               // one goroutine holds it alone
	Read                // any number of goroutines hold it together
)

// While a process elsewhere waits, a claim is passed on inside this process at
// most so often in a row, and for at most so much of the ttl. If local
// goroutines could go on for ever, the process elsewhere would starve.
const (
	maxPasses = 32
	passShare = 4
)

// Party is one participant. It must not be copied.
type Party struct {
	q           *core.Quorum
	write, read *core.Spec // by mode
	err         error      // of the name; every attempt to lock tells it

	mu    sync.Mutex
	grant *core.Lease   // of the goroutines that hold it; while idle it has ended
	queue []*waiter     // goroutines that wait, in order
	hold  *core.Hold    // the claim on the nodes; while idle it lingers
	until protocol.Time // lingering: until then,
	timer *time.Timer   // which this looks after

	readers   int32
	given     bool // a caller may have the grant
	shrinking bool // a Downgrade is under way
	mode      Mode
	kind      Mode          // of hold: Write or Read
	n         uint16        // hand-overs under the claim, for the token
	passes    uint16        // hand-overs since a waiter elsewhere was known,
	since     protocol.Time // and when that was
}

// waiter is a goroutine in the queue; turn tells it what it has got.
type waiter struct {
	mode Mode
	turn chan turn
}

// turn is either the lock, or the task of getting it from the nodes: with a
// place in their queue already when pending is not nil.
type turn struct {
	locked  bool
	pending *core.Pending
}

// New returns the participant of a primitive that takes the lock with the
// given terms: write, and read where there are readers. An unusable name is
// told by every attempt to lock.
func New(q *core.Quorum, set *core.Settings, write, read core.Spec) *Party {
	p := &Party{q: q}
	p.write = p.complete(set, write)
	if read.Weight > 0 {
		p.read = p.complete(set, read)
	}
	return p
}

// complete completes what is asked for in one of the modes.
func (p *Party) complete(set *core.Settings, s core.Spec) (spec *core.Spec) {
	s.Set, s.Notify, s.Brief = set, true, true
	if spec, p.err = p.q.NewSpec(s); p.err != nil {
		return &s
	}
	return spec
}

// Name returns the name.
func (p *Party) Name() string { return p.write.Name }

func (p *Party) set() *core.Settings { return p.write.Set }

func (p *Party) spec(mode Mode) *core.Spec {
	if mode == Read {
		return p.read
	}
	return p.write
}

// Lock gets the lock in the given mode, from inside the process if that can
// be, else from the nodes. A try does not wait for a turn.
func (p *Party) Lock(ctx context.Context, mode Mode, try bool) error {
	if p.err != nil {
		return p.err
	}
	if ctx.Err() != nil {
		return &core.Failure{Err: core.ContextError(ctx)}
	}
	p.mu.Lock()
	switch {
	case p.mode == idle:
		lingering := p.hold
		if lingering != nil && p.kind == mode && p.pass() {
			p.mode, p.readers = mode, 1
			p.mu.Unlock()
			return nil
		}
		p.mode, p.hold, p.grant = getting, nil, nil
		p.mu.Unlock()
		return p.acquire(ctx, mode, try, nil, lingering)
	case mode == Read && p.mode == Read && len(p.queue) == 0 && p.shareable():
		p.readers++
		p.mu.Unlock()
		return nil
	case try:
		p.mu.Unlock()
		return &core.Failure{Err: core.ErrHeld}
	}
	w := &waiter{mode: mode, turn: make(chan turn, 1)}
	p.queue = append(p.queue, w)
	p.mu.Unlock()
	return p.await(ctx, w)
}

// shareable reports whether one more reader may come in under the claim. Not
// while somebody waits behind it elsewhere, which can only be a writer: readers
// that went on coming would starve it.
func (p *Party) shareable() bool {
	s := p.hold.Standing()
	return s.Usable && !s.Waiters && p.grant.Lost() == nil
}

// await waits for the turn in the local queue.
func (p *Party) await(ctx context.Context, w *waiter) error {
	select {
	case t := <-w.turn:
		if t.locked {
			return nil
		}
		return p.acquire(ctx, w.mode, false, t.pending, nil)
	case <-ctx.Done():
	case <-p.q.Closing():
	}
	p.mu.Lock()
	i := slices.Index(p.queue, w)
	if i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	p.mu.Unlock()
	if i < 0 { // the turn came at the same time: it goes to the next
		if t := <-w.turn; t.locked {
			_, _ = p.Unlock(w.mode)
		} else {
			p.next(w.mode, t.pending)
		}
	}
	if ctx.Err() == nil {
		return &core.Failure{Err: core.ErrClosed}
	}
	return core.CutShort(core.ErrHeld, ctx)
}

// acquire gets the lock from the nodes; getting it is this goroutine's task.
// When its context ends, the place in the nodes' queue goes to the next local
// waiter. before is a claim that is in the way and is released first.
func (p *Party) acquire(ctx context.Context, mode Mode, try bool, pending *core.Pending, before *core.Hold) (err error) {
	var place *core.Pending // of this goroutine, for the next local waiter
	got := false
	// Deferred, because an observer may panic or end its goroutine. The next
	// local waiter would wait without end, for a task that no goroutine has.
	defer func() {
		if !got {
			p.next(mode, place)
		}
	}()
	if before != nil {
		before.Release()
	}
	if pending == nil {
		if pending, err = p.q.Begin(p.spec(mode), try, p); err != nil {
			return err
		}
	}
	hold, err := pending.Wait(ctx)
	if err != nil {
		if ctx.Err() == nil || try {
			pending.Cancel()
		} else {
			place = pending
		}
		return err
	}
	got = true
	p.mu.Lock()
	p.mode, p.kind, p.readers = mode, mode, 1
	p.hold, p.n, p.passes = hold, 0, 0
	p.grant, p.given = hold.Lease(0), false
	turns := p.readersAhead()
	p.mu.Unlock()
	for _, w := range turns {
		w.turn <- turn{locked: true}
	}
	if !hold.Valid() {
		p.Ended(core.ErrLost) // so early that it was told before p.hold was set
	}
	return nil
}

// readersAhead lets the readers at the head of the local queue in with one that
// has just come in: those who were here before any writer of this process.
func (p *Party) readersAhead() (in []*waiter) {
	for p.mode == Read && len(p.queue) > 0 && p.queue[0].mode == Read {
		in = append(in, p.pop())
		p.readers++
	}
	return in
}

// next gives the task of getting the lock from the nodes to the next local
// waiter, with the place in their queue if it is one for the same mode.
func (p *Party) next(mode Mode, pending *core.Pending) {
	p.mu.Lock()
	w := p.pop()
	if p.mode = getting; w == nil {
		p.mode = idle
	}
	p.mu.Unlock()
	if pending != nil && (w == nil || w.mode != mode) {
		pending.Cancel()
		pending = nil
	}
	if w != nil {
		w.turn <- turn{pending: pending}
	}
}

func (p *Party) pop() *waiter {
	if len(p.queue) == 0 {
		return nil
	}
	w := p.queue[0]
	p.queue[0] = nil
	if p.queue = p.queue[1:]; len(p.queue) == 0 {
		p.queue = nil
	}
	return w
}
