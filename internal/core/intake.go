package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/process"
)

// This file owns the wait of a call until its attempt may begin.

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
		timer := time.NewTimer(q.driver.furthest(&q.set))
		defer timer.Stop()
		late = timer.C
	}
	f := &Failure{Err: fmt.Errorf("%w: %w", ErrNoQuorum, errCrowded), Needed: q.driver.client.Group().Sets.Need()}
	select {
	case <-w: // Close may have begun, and has listed the attempts that it ends
		if !q.isClosed() {
			return nil
		}
		i.leave()
		f.Err = ErrClosed
		return f
	case <-late:
	case <-ctx.Done():
		f.Err = &cutShort{f.Err, ContextError(ctx)}
	case <-q.closing:
		f.Err = ErrClosed
	}
	i.mu.Lock()
	waited := i.in.GiveUp(e)
	i.mu.Unlock()
	if !waited {
		i.leave()
	}
	return f
}
