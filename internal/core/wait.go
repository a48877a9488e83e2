package core

import (
	"context"
	"sync"
	"time"
)

// wait is a goroutine that waits for something to be so. Whoever changes the
// attempt looks whether it is, and wakes it once, then.
type wait struct {
	so    func() bool   // called with a.mu held
	woken chan struct{} // holds one, so that nobody waits for the goroutine
	timer *time.Timer
	next  *wait
}

// waits are spare ones: nobody else has one that is in no attempt's list, and
// nothing is left in the channels of one that is put back.
var waits = sync.Pool{New: func() any {
	return &wait{woken: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
}}

// until waits until so, which is called with a.mu held, says yes, for at most
// d and for as long as the context lasts. It reports whether it did.
func (a *attempt) until(ctx context.Context, d time.Duration, so func() bool) bool {
	a.mu.Lock()
	if so() {
		a.mu.Unlock()
		return true
	}
	w := waits.Get().(*wait)
	w.so, w.next, a.waits = so, a.waits, w
	a.mu.Unlock()

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
	w.timer.Stop()
	w.so, w.next = nil, nil
	waits.Put(w)
	return woken
}

// dropWait takes w from the list. It reports whether it was there.
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

// wakeWaits wakes those whose condition has come about. Called with a.mu held.
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
