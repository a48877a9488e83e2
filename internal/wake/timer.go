package wake

// This file owns a timer that is only moved to earlier times.

import (
	"math"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Timer is the next Tick of a process.Client, safe for concurrent use: mu
// guards at.
// Invariant: the timer fires at the earliest time that was asked for since it
// fired last. A goroutine that got its action first may carry it out last.
type Timer struct {
	mu    sync.Mutex
	timer *time.Timer
	at    protocol.Time // 0: it does not run
}

// Start begins the timer. It runs for the first time when Set is called.
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

// Set has the timer fire at a time or earlier.
func (t *Timer) Set(now, at protocol.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == 0 || at < t.at {
		t.at = at
		t.timer.Reset(max(at.Sub(now), 0))
	}
}

// Stop ends the timer for good.
// Invariant: nothing keeps a closed Quorum. The timer reaches it through tick.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = stopped
	t.timer.Stop()
}

// stopped is earlier than any time that is asked for, and not 0.
const stopped = protocol.Time(math.MinInt64)
