package wake

import (
	"math"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Timer is the timer for the next Tick of a process.Client. It is safe for
// concurrent use: mu guards at.
// Invariant: the timer fires at the earliest time that was passed to Set since
// it last fired. Two goroutines may call Set in the reverse order of the events
// that made them do so.
type Timer struct {
	mu    sync.Mutex
	timer *time.Timer
	at    protocol.Time // when it fires; 0: it is not set
}

// Start prepares the timer, which calls tick when it fires. Set must be called
// for it to fire the first time.
func (t *Timer) Start(tick func()) {
	t.timer = time.AfterFunc(time.Hour, func() {
		t.mu.Lock()
		if t.at != stopped {
			t.at = 0
		}
		t.mu.Unlock()
		tick()
	})
}

// Set makes the timer fire at the given time or earlier.
func (t *Timer) Set(now, at protocol.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == 0 || at < t.at {
		t.at = at
		t.timer.Reset(max(at.Sub(now), 0))
	}
}

// Stop ends the timer permanently.
// Invariant: nothing keeps a closed Quorum reachable. The timer would, through
// tick.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = stopped
	t.timer.Stop()
}

// stopped is the value of at after Stop: earlier than any time passed to Set,
// and not 0.
const stopped = protocol.Time(math.MinInt64)
