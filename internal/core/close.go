package core

// This file owns the end of a Quorum, and the goroutines that it waits for.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
)

func (q *Quorum) isClosed() bool {
	select {
	case <-q.closing:
		return true
	default:
		return false
	}
}

// Close ends things in an order that matters: first what starts something new
// (watches, repairs, tasks), then the claims, whose leaves are queued, then the
// schedulers, then the connections, which send the leaves. It waits for a node
// for as long as that acknowledges leaves, see whileAcknowledged. In a call of
// the observer it only fails with ErrInvalid: it would wait for the goroutine
// that makes the call. A second call fails with ErrClosed.
func (q *Quorum) Close(ctx context.Context) error {
	if q.observer.inside() || q.buckets != nil && slices.ContainsFunc(q.buckets.begun(), func(b *Quorum) bool { return b.observer.inside() }) {
		return &fault.Failure{Err: errCloseInObserver}
	}
	if q.buckets != nil {
		q.once.Do(func() { close(q.closing) })
		return q.buckets.close(ctx)
	}
	err := error(&fault.Failure{Err: fault.ErrClosed})
	q.once.Do(func() {
		q.tasks.end()
		close(q.closing)
		q.end()
		q.watches.close()
		// wakeUps sleeps in a read of the waker, and only this ends it.
		q.waker.Close()
		// The turns are given up, so that another client may go on before their
		// keys expire.
		q.driver.carryOut(q.driver.client.Close(q.now()))
		q.tasks.running.Wait() // they end with closing or life
		for _, a := range q.attempts.all() {
			a.close()
		}
		// No lock of an attempt is held: a batch under way may need it.
		q.ticks.Close()
		q.deadlines.Close()
		q.driver.timer.Stop()
		q.reach.stop()
		// An Ended callback may be under way. Its leaves are sent after it, so
		// wait for it, with a bound.
		for end := time.Now().Add(q.set.NodeTimeout); q.telling.Load() > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(ctx, q.set.TTL)
		defer cancel()
		err = errors.Join(q.nodes.close(ctx, q.driver.furthest(&q.set)), q.seeds.close(ctx, q.set.NodeTimeout))
		q.clients.Close()
	})
	return err
}

// Closing is closed when Close begins.
func (q *Quorum) Closing() <-chan struct{} { return q.closing }

// patience is for how many node timeouts Close bears with a node that has begun
// to acknowledge leaves and has stopped: it is slow, and most likely goes on.
const patience = 5

// whileAcknowledged returns a context that ends when the node acknowledges no
// leave any more: none for a node timeout, or for patience of these after the
// first one. It counts turns and not time, so that a process that gets no
// processor does not take its nodes for hung.
func (l *connection) whileAcknowledged(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	const turns = 8
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(timeout / turns)
		defer tick.Stop()
		seen := l.released.Load()
		for left := turns; left > 0; left-- {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now := l.released.Load(); now != seen {
				seen, left = now, patience*turns
			}
		}
		cancel(fmt.Errorf("no release was acknowledged any more: %w", context.DeadlineExceeded))
	}()
	return ctx, func() { cancel(nil) }
}

// tasks are the goroutines of a Quorum that Close waits for: the waker,
// recordings, steps of repairs, and connections that begin or end. Each ends by
// itself when Quorum.closing is closed and Quorum.life ends. It is safe for
// concurrent use; mu guards the beginning of a task.
// Invariant: no task begins after end has returned.
type tasks struct {
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// start runs f in a goroutine, and reports false if end has been called.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.running.Go(f)
	}
	return !t.ended
}

func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
}

// wakeUps looks at the clock whenever the machine wakes up, and has the
// schedulers look at it: the timer that each of them sleeps by stood still too.
// It is a goroutine of the Quorum.
func (q *Quorum) wakeUps() {
	for was, before := q.clock.Slept(); q.waker.Wait(); {
		q.woken()
		woke, all := q.clock.Slept()
		if woke != was {
			q.driver.carryOut(q.driver.client.Slept(q.now(), woke))
			q.set.Logger.Warn("quorate: this machine was suspended; holds whose lease ended meanwhile are lost", "for", all-before)
		}
		was, before = woke, all
	}
}

func (q *Quorum) woken() {
	q.clock.CountSleep()
	q.ticks.Look()
	q.deadlines.Look()
}
