package peers

// This file owns the goroutines beside the callers: those that Close waits for,
// and those in which the observer is called.

import (
	"sync"

	"github.com/quorate/quorate/internal/setup"
)

// tasks are the goroutines of a client that Close waits for: the waker,
// recordings, steps of repairs, and connections that begin or end. Each ends by
// itself when peers.over is closed and peers.life ends. It is safe for
// concurrent use; mu guards the beginning of a task.
// Invariant: no task begins after end has returned.
type tasks struct {
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// Start runs f in a goroutine, and reports false if end has been called.
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
// guards waiting. No event waits for a call, so a call may use the Quorum, and
// Close it.
// Invariant: events come in their order, one after the other.
type observer struct {
	f       func(setup.Event) // nil: none
	mu      sync.Mutex
	waiting []setup.Event // the first one's call is under way
}

// Call has the observer called. It does not block: a lock may be held.
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
