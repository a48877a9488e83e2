package core

// This file owns the calls of the observer that the application gives.

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/setup"
)

// observer calls the application's observer. It is safe for concurrent use.
// Invariant: no lock is held during a call, which may use the Quorum. Only
// Close must not wait in one.
type observer struct {
	f    func(setup.Event) // nil: none
	busy atomic.Int32      // calls under way
}

// call calls the observer in a goroutine of its own, and counts the calls under
// way: see inside. It waits for the observer, so the order of events stays.
// Invariant: an observer ends no goroutine of the library. An observer may end
// its goroutine, as t.FailNow in a test does.
func (o *observer) call(e setup.Event) {
	if o.f == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.busy.Add(1)
		defer o.busy.Add(-1) // also when it ends the goroutine
		o.f(e)
	}()
	<-done
}

// inside reports whether this goroutine runs the observer. If another Quorum's
// observer runs here while this one's runs elsewhere, it reports that too. It
// reads the stack, since a goroutine has no identity to compare, and only while
// the observer runs somewhere.
func (o *observer) inside() bool {
	if o.busy.Load() == 0 {
		return false
	}
	pcs := make([]uintptr, 1024)
	for n := runtime.Callers(1, pcs); n == len(pcs); n = runtime.Callers(1, pcs) {
		pcs = make([]uintptr, 2*n)
	}
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "/core.(*observer).call.func1") {
			return true
		}
		if !more {
			return false
		}
	}
}

var errCloseInObserver = fmt.Errorf("%w: Close was called inside Observe, and would wait for the goroutine that called it; call it in a goroutine of its own", fault.ErrInvalid)
