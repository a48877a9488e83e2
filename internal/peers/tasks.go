package peers

// Background goroutines: those that Close waits for, and the one that calls the
// observer.

import (
	"sync"

	"github.com/quorate/quorate/internal/setup"
)

// tasks are the goroutines that Close waits for: the waker, recordings, steps
// of repairs, and connections that begin or end. Each one ends on its own once
// Peers.Over is closed and Peers.Life ends. It is safe for concurrent use; mu
// guards the start of a task.
// Invariant: no task starts after End has returned.
type tasks struct {
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// Start runs f in a goroutine, or returns false if End has been called.
func (t *tasks) Start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.running.Go(f)
	}
	return !t.ended
}

func (t *tasks) End() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
}

func (t *tasks) Wait() { t.running.Wait() }

// observer calls the application's observer. It is safe for concurrent use; mu
// guards waiting. No event waits for a call, so the application may use the
// Quorum in it, and even close it.
// Invariant: events are delivered in order, one after the other.
type observer struct {
	f       func(setup.Event) // nil: none
	mu      sync.Mutex
	waiting []setup.Event // the first one's call is under way
}

// Call queues an event for the observer. It does not block, so the caller may
// hold a lock.
func (o *observer) Call(e setup.Event) {
	if o.f == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting = append(o.waiting, e); len(o.waiting) == 1 {
		go o.deliver(e)
	}
}

func (o *observer) deliver(e setup.Event) {
	defer func() { // also when the call ends the goroutine
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.waiting = o.waiting[1:]; len(o.waiting) > 0 {
			go o.deliver(o.waiting[0])
		}
	}()
	o.f(e)
}
