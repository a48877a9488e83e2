package core

import (
	"context"
	"time"
)

// wait is a goroutine that waits for something to be so. Whoever changes the
// attempt looks whether it is, and wakes it once, then.
type wait struct {
	so   func() bool // called with a.mu held
	done chan struct{}
	next *wait
}

// until waits until so, which is called with a.mu held, says yes, for at most
// d and for as long as the context lasts. It reports whether it did.
func (a *attempt) until(ctx context.Context, d time.Duration, so func() bool) bool {
	a.mu.Lock()
	if so() {
		a.mu.Unlock()
		return true
	}
	w := &wait{so: so, done: make(chan struct{}), next: a.waits}
	a.waits = w
	a.mu.Unlock()

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := &a.waits; *p != nil; p = &(*p).next {
		if *p == w {
			*p = w.next
			return false
		}
	}
	return true // at the last moment
}

// wakeWaits wakes those whose condition has come about. Called with a.mu held.
func (a *attempt) wakeWaits() {
	for p := &a.waits; *p != nil; {
		w := *p
		if !w.so() {
			p = &w.next
			continue
		}
		close(w.done)
		*p = w.next
	}
}
