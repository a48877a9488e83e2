package core

import (
	"context"
	"errors"
	"slices"
	"time"
)

// This file owns the end of a Quorum.

func (q *Quorum) isClosed() bool {
	select {
	case <-q.closing:
		return true
	default:
		return false
	}
}

// Close ends things in an order that matters. First what starts something new
// (watches, repairs, tasks), then the claims, whose leaves are queued, then the
// schedulers, then the connections, which send the leaves. If the connections
// went first, everything that this process holds would stay taken for a lease.
//
// Close leaves all claims that are held or queued, sends the leaves within the
// node timeout, and ends every goroutine. In a call of the observer it does
// nothing but fail with ErrInvalid: it would wait for the goroutine that makes
// the call. A second call fails with ErrClosed.
func (q *Quorum) Close(ctx context.Context) error {
	if q.observer.inside() || q.buckets != nil && slices.ContainsFunc(q.buckets.begun(), func(b *Quorum) bool { return b.observer.inside() }) {
		return &Failure{Err: errCloseInObserver}
	}
	if q.buckets != nil {
		q.once.Do(func() { close(q.closing) })
		return q.buckets.close(ctx)
	}
	err := error(&Failure{Err: ErrClosed})
	q.once.Do(func() {
		q.tasks.end()
		close(q.closing)
		q.discovery.cancel()
		q.watches.close()
		// wakeUps sleeps in a read of the waker, and only this ends it.
		q.waker.close()
		q.repairs.close()
		q.tasks.running.Wait() // they end with closing
		for _, a := range q.attempts.all() {
			a.close()
		}
		// No lock of an attempt is held here: a batch under way may need it to
		// end.
		q.ticks.close()
		q.deadlines.close()
		q.driver.timer.stop()
		// An Ended callback may be under way. Its leaves are sent after it, so
		// wait for it, with a bound.
		for end := time.Now().Add(q.set.NodeTimeout); q.telling.Load() > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(ctx, q.driver.furthest(&q.set))
		defer cancel()
		err = errors.Join(q.nodes.close(ctx), q.seeds.close(ctx))
		q.clientsMu.Lock()
		defer q.clientsMu.Unlock()
		for _, c := range q.offered {
			_ = c.Close() // it has no connections
		}
	})
	return err
}

// Closing is closed when Close begins.
func (q *Quorum) Closing() <-chan struct{} { return q.closing }
