package core

// This file owns what is under way, where pushes and the events of a node find
// it, and the wait of a call until its attempt may begin.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
)

// registry is what is under way of a Quorum: attempts and watches by id, and
// operations on records. It is safe for concurrent use: mu guards all, and is
// held for one access to the map only. Lock order: the lock of what is listed,
// then mu.
// Invariant: an attempt is listed before its first request is queued. A node
// may push the vote before that goroutine goes on.
type registry[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]V
}

func (r *registry[K, V]) add(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[K]V{}
	}
	r.all[k] = v
}

// drop reports whether it was listed.
func (r *registry[K, V]) drop(k K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, had := r.all[k]
	delete(r.all, k)
	return had
}

// find returns the zero value for what has ended: nodes may push for that, too.
func (r *registry[K, V]) find(k K) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[k]
}

// list returns a copy, so the caller takes the locks of what is listed without
// mu. An attempt that begins meanwhile may be missing: it asks the nodes by
// itself, and when the Quorum closes, its Pending.Wait cancels it.
func (r *registry[K, V]) list() []V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.all))
}

// intake is a process.Intake, and safe for concurrent use; mu guards it. A
// caller that waits has a channel, which receives when it has a place.
// Lock order: attempt.mu, then intake.mu.
type intake struct {
	mu sync.Mutex
	in process.Intake[chan struct{}]
}

func (i *intake) take() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.in.Take()
}

func (i *intake) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if next, ok := i.in.Leave(); ok {
		next <- struct{}{}
	}
}

var errCrowded = fmt.Errorf("%d locks of this process wait for the nodes' first answers, and this one waits behind them", process.Places)

// enter waits for a place. It fails when the context ends or the Quorum closes.
// A try waits no longer than a node may take to answer.
func (i *intake) enter(ctx context.Context, q *Quorum, try bool) error {
	i.mu.Lock()
	if i.in.Take() {
		i.mu.Unlock()
		return nil
	}
	w := make(chan struct{}, 1)
	e := i.in.Wait(w)
	i.mu.Unlock()
	var late <-chan time.Time
	if try {
		timer := time.NewTimer(q.Driver.Furthest(&q.Set))
		defer timer.Stop()
		late = timer.C
	}
	f := &fault.Failure{Err: fmt.Errorf("%w: %w", fault.ErrNoQuorum, errCrowded), Needed: q.Driver.Client.Group().Sets.Need()}
	select {
	case <-w: // Close may have begun, and has listed the attempts that it ends
		if !q.IsClosed() {
			return nil
		}
		i.leave()
		f.Err = fault.ErrClosed
		return f
	case <-late:
	case <-ctx.Done():
		_ = f.Cut(ctx)
	case <-q.Over:
		f.Err = fault.ErrClosed
	}
	i.mu.Lock()
	waited := i.in.GiveUp(e)
	i.mu.Unlock()
	if !waited {
		i.leave()
	}
	return f
}
