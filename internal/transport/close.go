package transport

import (
	"context"
	"fmt"
	"time"
)

// This file owns the end of the link: what is still delivered, and until when.

// Close see [Transport]. Lasting commands that still have no connection are
// waited for, too.
func (l *Ordered) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.wg.Wait()
		return nil
	}
	l.closed = true
	drained := make(chan struct{})
	l.drained = drained
	l.checkDrained()
	if l.cur != nil {
		l.cur.wakeWriter() // what no Flush has followed would be waited for forever
	}
	l.mu.Unlock()
	left := 0
	select {
	case <-drained: // what others append from here on ends with the connection
	case <-ctx.Done():
		left = l.left()
	}
	// The end of ctx ends run, which has watch fail the connection, and listen.
	// wg counts them and follow. Each Reply that settle owes has been called
	// when watch returns.
	l.cancel()
	l.wg.Wait()
	l.dismiss(ctx)

	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.kept {
		l.refuse(e.cmd, ErrClosed)
	}
	l.kept = nil
	for l.refusing {
		l.idle.Wait()
	}
	if left > 0 {
		return fmt.Errorf("connection closed with %d commands unanswered: %w", left, context.Cause(ctx))
	}
	return nil
}

func (l *Ordered) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.kept)
	if l.cur != nil {
		n += l.cur.pending
	}
	return n
}

// dismiss waits for what runs code of the client's owner, which may hang: a
// node timeout longer than ctx at most.
func (l *Ordered) dismiss(ctx context.Context) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		l.guests.Wait()
	}()
	select {
	case <-gone:
		return
	case <-ctx.Done():
	}
	timeout := time.NewTimer(l.cfg.NodeTimeout)
	defer timeout.Stop()
	select {
	case <-gone:
	case <-timeout.C:
	}
}

// checkDrained wakes Close when nothing is pending any more. Ordered.mu is
// held. It is called wherever one of its conditions may have come true: after
// an answer, a settle, a raise, or leaves that were given up.
func (l *Ordered) checkDrained() {
	if l.drained != nil && !l.dying && len(l.kept) == 0 && (l.cur == nil || l.cur.pending == 0) {
		close(l.drained)
		l.drained = nil
	}
}
