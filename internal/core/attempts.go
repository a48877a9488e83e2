package core

// This file owns the attempts by id, where pushes and the events of a node find
// them, and the wait of a call until its attempt may begin.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// attempts are the attempts of a Quorum that are under way or held, by id. It
// is safe for concurrent use: each shard has a lock of its own. There are 16,
// or the readers of all nodes and all callers would meet at one lock.
type attempts struct{ shards [16]shard }

// shard is a part of the attempts. mu guards it, and is held for one access to
// the map only. Lock order: attempt.mu, then shard.mu.
type shard struct {
	mu       sync.Mutex
	attempts map[protocol.ID]*attempt
}

func (s *attempts) init() {
	for i := range s.shards {
		s.shards[i].attempts = map[protocol.ID]*attempt{}
	}
}

// Byte 2 of an id is random, so shards are even.
func (s *attempts) shard(id protocol.ID) *shard { return &s.shards[id[2]%byte(len(s.shards))] }

// add lets pushes find the attempt. Called with a.mu held. Invariant: an
// attempt is registered before its first request is queued. A node may push the
// vote before that goroutine goes on.
func (s *attempts) add(id protocol.ID, a *attempt) {
	p := s.shard(id)
	p.mu.Lock()
	p.attempts[id] = a
	p.mu.Unlock()
}

// drop ends that. Called with a.mu held.
func (s *attempts) drop(a *attempt) {
	p := s.shard(a.claim.ID)
	p.mu.Lock()
	delete(p.attempts, a.claim.ID)
	p.mu.Unlock()
}

// find returns nil for an attempt that has ended. The caller holds no lock.
func (s *attempts) find(id protocol.ID) *attempt {
	p := s.shard(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts[id]
}

// all returns a copy, so the caller locks attempts with no shard locked. An
// attempt that begins meanwhile may be missing: it asks the nodes by itself,
// and when the Quorum closes, its Pending.Wait cancels it.
func (s *attempts) all() []*attempt {
	var as []*attempt
	for i := range s.shards {
		p := &s.shards[i]
		p.mu.Lock()
		for _, a := range p.attempts {
			as = append(as, a)
		}
		p.mu.Unlock()
	}
	return as
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
