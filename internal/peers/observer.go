package peers

import (
	"sync"

	"github.com/quorate/quorate/internal/setup"
)

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

// Wanted reports whether there is an observer.
func (o *observer) Wanted() bool { return o.f != nil }
