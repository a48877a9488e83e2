package core

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/setup"
)

// A call of the observer may end its goroutine: the next event comes all the
// same, after it.
func TestObserverThatExits(t *testing.T) {
	t.Parallel()
	var o observer
	got := make(chan string, 3)
	o.f = func(e setup.Event) {
		got <- e.Name
		runtime.Goexit()
	}
	for _, name := range []string{"1", "2", "3"} {
		o.call(setup.Event{Name: name})
	}
	for _, name := range []string{"1", "2", "3"} {
		select {
		case e := <-got:
			assert.Equal(t, name, e)
		case <-time.After(time.Minute):
			t.Fatal("an event is missing")
		}
	}
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
