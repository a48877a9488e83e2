package peers

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
		o.Call(setup.Event{Name: name})
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

// Close waits for what has begun, and nothing begins after that.
func TestNoTaskBeginsAfterTheEnd(t *testing.T) {
	var ts tasks
	ran := make(chan struct{})
	assert.True(t, ts.Start(func() { close(ran) }))
	ts.End()
	assert.False(t, ts.Start(func() { t.Error("it runs") }))
	ts.Wait()
	<-ran
}
