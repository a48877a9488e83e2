// Package localqueue is one participant of the quorum protocol: the goroutines of a
// process that share one value of a primitive. They queue here, first come
// first served, pass a claim on between them without a round trip, and share
// a claim where they only read.
package localqueue

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

// The modes of a Queue.
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

// Queue is one participant. It must not be copied.
type Queue struct {
	quorum      *core.Quorum
	write, read *core.Spec // by mode
	err         error      // of the name; every attempt to lock tells it

	mu    sync.Mutex
	lease *core.Lease   // of the goroutines that hold it; while idle it has ended
	queue []*waiter     // goroutines that wait, in order
	hold  *core.Hold    // the claim on the nodes; while idle it lingers
	until protocol.Time // lingering: until then,
	timer *time.Timer   // which this looks after

	readers      int32
	leaseExposed bool // a caller may have the lease
	shrinking    bool // a Downgrade is under way
	mode         Mode
	kind         Mode          // of hold: Write or Read
	n            uint16        // hand-overs under the claim, for the token
	passes       uint16        // hand-overs since a waiter elsewhere was known,
	since        protocol.Time // and when that was
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
func New(quorum *core.Quorum, set *core.Settings, write, read core.Spec) *Queue {
	q := &Queue{quorum: quorum}
	q.write = q.complete(set, write)
	if read.Weight > 0 {
		q.read = q.complete(set, read)
	}
	return q
}

// complete completes what is asked for in one of the modes.
func (q *Queue) complete(set *core.Settings, s core.Spec) (spec *core.Spec) {
	s.Set, s.Notify, s.Brief = set, true, true
	if spec, q.err = q.quorum.NewSpec(s); q.err != nil {
		return &s
	}
	return spec
}

// Name returns the name.
func (q *Queue) Name() string { return q.write.Name }

func (q *Queue) set() *core.Settings { return q.write.Set }

func (q *Queue) spec(mode Mode) *core.Spec {
	if mode == Read {
		return q.read
	}
	return q.write
}

// Lock gets the lock in the given mode, from inside the process if that can
// be, else from the nodes. A try does not wait for a turn.
func (q *Queue) Lock(ctx context.Context, mode Mode, try bool) error {
	if q.err != nil {
		return q.err
	}
	if ctx.Err() != nil {
		return &core.Failure{Err: core.ContextError(ctx)}
	}
	q.mu.Lock()
	switch {
	case q.mode == idle:
		lingering := q.hold
		if lingering != nil && q.kind == mode && q.pass() {
			q.mode, q.readers = mode, 1
			q.mu.Unlock()
			return nil
		}
		q.mode, q.hold, q.lease = getting, nil, nil
		q.mu.Unlock()
		return q.acquire(ctx, mode, try, nil, lingering)
	case mode == Read && q.mode == Read && len(q.queue) == 0 && q.shareable():
		q.readers++
		q.mu.Unlock()
		return nil
	case try:
		q.mu.Unlock()
		return &core.Failure{Err: core.ErrHeld}
	}
	w := &waiter{mode: mode, turn: make(chan turn, 1)}
	q.queue = append(q.queue, w)
	q.mu.Unlock()
	return q.await(ctx, w)
}

// shareable reports whether one more reader may come in under the claim. Not
// while somebody waits behind it elsewhere, which can only be a writer: readers
// that went on coming would starve it.
func (q *Queue) shareable() bool {
	s := q.hold.Standing()
	return s.Usable && !s.Waiters && q.lease.Lost() == nil
}

// await waits for the turn in the local queue.
func (q *Queue) await(ctx context.Context, w *waiter) error {
	select {
	case t := <-w.turn:
		if t.locked {
			return nil
		}
		return q.acquire(ctx, w.mode, false, t.pending, nil)
	case <-ctx.Done():
	case <-q.quorum.Closing():
	}
	q.mu.Lock()
	i := slices.Index(q.queue, w)
	if i >= 0 {
		q.queue = slices.Delete(q.queue, i, i+1)
	}
	q.mu.Unlock()
	if i < 0 { // the turn came at the same time: it goes to the next
		if t := <-w.turn; t.locked {
			_, _ = q.Unlock(w.mode)
		} else {
			q.next(w.mode, t.pending)
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
func (q *Queue) acquire(ctx context.Context, mode Mode, try bool, pending *core.Pending, before *core.Hold) (err error) {
	var place *core.Pending // of this goroutine, for the next local waiter
	got := false
	// Deferred, because an observer may panic or end its goroutine. The next
	// local waiter would wait without end, for a task that no goroutine has.
	defer func() {
		if !got {
			q.next(mode, place)
		}
	}()
	if before != nil {
		before.Release()
	}
	if pending == nil {
		if pending, err = q.quorum.Begin(q.spec(mode), try, q); err != nil {
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
	q.mu.Lock()
	q.mode, q.kind, q.readers = mode, mode, 1
	q.hold, q.n, q.passes = hold, 0, 0
	q.lease, q.leaseExposed = hold.Lease(0), false
	turns := q.readersAhead()
	q.mu.Unlock()
	for _, w := range turns {
		w.turn <- turn{locked: true}
	}
	if !hold.Valid() {
		q.Ended(core.ErrLost) // so early that it was told before q.hold was set
	}
	return nil
}

// readersAhead lets the readers at the head of the local queue in with one that
// has just come in: those who were here before any writer of this process.
func (q *Queue) readersAhead() (in []*waiter) {
	for q.mode == Read && len(q.queue) > 0 && q.queue[0].mode == Read {
		in = append(in, q.pop())
		q.readers++
	}
	return in
}

// next gives the task of getting the lock from the nodes to the next local
// waiter, with the place in their queue if it is one for the same mode.
func (q *Queue) next(mode Mode, pending *core.Pending) {
	q.mu.Lock()
	w := q.pop()
	if q.mode = getting; w == nil {
		q.mode = idle
	}
	q.mu.Unlock()
	if pending != nil && (w == nil || w.mode != mode) {
		pending.Cancel()
		pending = nil
	}
	if w != nil {
		w.turn <- turn{pending: pending}
	}
}

func (q *Queue) pop() *waiter {
	if len(q.queue) == 0 {
		return nil
	}
	w := q.queue[0]
	q.queue[0] = nil
	if q.queue = q.queue[1:]; len(q.queue) == 0 {
		q.queue = nil
	}
	return w
}
