package e2e

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Lateness measures by how much the machine itself is late: on one that has much else to do, a goroutine runs
// long after its time has come. A test that says how long something takes allows for that, or the next busy machine
// breaks it.
type Lateness struct{ most atomic.Int64 }

// MeasureLateness measures until the test ends.
func MeasureLateness(t testing.TB) *Lateness {
	l := &Lateness{}
	const every = 2 * time.Millisecond
	ticker := time.NewTicker(every)
	over := make(chan struct{})
	var measuring sync.WaitGroup
	measuring.Go(func() {
		for last := time.Now(); ; {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			now := time.Now()
			l.most.Store(max(l.most.Load(), int64(now.Sub(last)-every)))
			last = now
		}
	})
	t.Cleanup(func() { close(over); measuring.Wait(); ticker.Stop() })
	return l
}

// Reset forgets what was measured so far.
func (l *Lateness) Reset() { l.most.Store(0) }

// Allow is how much longer than on an idle machine something may take that consists of so many steps, each of which may
// have been late: nothing, on a machine that is late by 20 ms at most.
func (l *Lateness) Allow(steps int) time.Duration {
	late := time.Duration(l.most.Load())
	if late <= 20*time.Millisecond {
		return 0
	}
	return time.Duration(steps) * late
}
