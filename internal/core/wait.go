package core

// This file owns the callers that wait for a change of an attempt that is not
// its end.

import (
	"context"
	"time"
)

// wait is a goroutine that waits until a condition of an attempt holds. A
// change that can make one hold calls wakeWaits before a.mu is free. a.mu
// guards a wait while it is in the attempt's list. Otherwise it belongs to its
// goroutine.
type wait struct {
	so    func() bool   // called with a.mu held
	woken chan struct{} // has room for one, so that waking it never blocks
	timer *time.Timer
	next  *wait
}

// wait returns a wait that is in use nowhere. Invariant: a spare one is in no
// attempt's list, and its channels are empty.
func (s *spares) wait() *wait {
	if w, ok := s.waits.Get().(*wait); ok {
		return w
	}
	return &wait{woken: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
}

// until waits until so holds, for at most d and for as long as the context
// lasts. It reports whether so held.
func (a *attempt) until(ctx context.Context, d time.Duration, so func() bool) bool {
	a.mu.Lock()
	if so() {
		a.mu.Unlock()
		return true
	}
	w := a.q.spares.wait()
	w.so, w.next, a.waits = so, a.waits, w
	a.mu.Unlock()

	// Without a.mu: the answers that make the condition hold need it. What
	// wakes this goroutine has called so under a.mu.
	w.timer.Reset(d)
	woken := false
	select {
	case <-w.woken:
		woken = true
	case <-ctx.Done():
	case <-w.timer.C:
	}
	if !woken && !a.dropWait(w) {
		<-w.woken // at the last moment
		woken = true
	}
	// A timer that was stopped delivers nothing later, so the spare wait is
	// empty. so is cleared: the pool would keep its attempt alive.
	w.timer.Stop()
	w.so, w.next = nil, nil
	a.q.spares.waits.Put(w)
	return woken
}

// dropWait takes w from the list. It reports whether it was there. If not,
// wakeWaits has sent to woken under the same a.mu, so until receives at once.
func (a *attempt) dropWait(w *wait) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := &a.waits; *p != nil; p = &(*p).next {
		if *p == w {
			*p = w.next
			return true
		}
	}
	return false
}

// wakeWaits wakes the goroutines whose conditions hold. Called with a.mu held.
// endUnlock calls it after each event, and transmit when it gives a leave up: a
// release that waits for that leave would otherwise wait for its whole bound.
func (a *attempt) wakeWaits() {
	for p := &a.waits; *p != nil; {
		w := *p
		if !w.so() {
			p = &w.next
			continue
		}
		*p = w.next // before it is woken: then it is its own again
		w.woken <- struct{}{}
	}
}
