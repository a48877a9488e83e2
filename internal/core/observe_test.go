package core

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/setup"
)

// Close inside the observer is noticed however deep the observer's calls are.
func TestCloseDeepInsideTheObserver(t *testing.T) {
	t.Parallel()
	var o observer
	inside := false
	o.f = func(setup.Event) { deep(3000, func() { inside = o.inside() }) }
	o.call(setup.Event{})
	assert.True(t, inside)
	assert.False(t, o.inside())
}

//go:noinline
func deep(frames int, f func()) {
	if frames == 0 {
		f()
		return
	}
	deep(frames-1, f)
	runtime.KeepAlive(frames)
}

// A goroutine of the library goes on though the observer ends the goroutine
// that calls it.
func TestObserverThatExits(t *testing.T) {
	t.Parallel()
	var o observer
	o.f = func(setup.Event) { runtime.Goexit() }
	done := make(chan struct{})
	go func() {
		o.call(setup.Event{})
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the goroutine has ended")
	}
	assert.Zero(t, o.busy.Load())
}

// What a lock costs more as it could be traced, and is not.
func BenchmarkUntraced(b *testing.B) {
	q, spec := &Quorum{}, &Spec{}
	b.ReportAllocs()
	for b.Loop() {
		_, span := q.Trace(b.Context(), spec, false)
		for range 4 { // a request to each of two nodes, and the answers
			(*seen)(nil).note(lease.Joining, 0, nil)
		}
		span.End(nil, nil, nil, nil)
		span.finish(nil)
		span.Ended()
	}
}
