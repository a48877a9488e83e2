// Package lateness tells a test by how much the machine it runs on was late.
package lateness

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Lateness measures by how much the machine itself is late: on one that has
// much else to do, a goroutine runs long after its time has come. A test that
// says how long something takes allows for that, or the next busy machine
// breaks it.
type Lateness struct {
	most atomic.Int64

	mu     sync.Mutex
	pauses []span
}

// span is a time in which the machine, or a server on it, stood still.
type span struct{ from, to time.Time }

// shortest is the shortest time for which a machine is said to stand still.
const shortest = 20 * time.Millisecond

// Measure measures until the test ends.
func Measure(t testing.TB) *Lateness {
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
			l.note(last, now)
			last = now
		}
	})
	t.Cleanup(func() { close(over); measuring.Wait(); ticker.Stop() })
	return l
}

// Watch measures a server as well until the test ends. ask asks the server for
// something that takes no time. It returns an error for a server that does not
// run: that one is not late.
func (l *Lateness) Watch(t testing.TB, ask func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ticker := time.NewTicker(shortest)
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			before := time.Now()
			if err := ask(ctx); err == nil {
				l.note(before, time.Now())
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { cancel(); watching.Wait(); ticker.Stop() })
}

// note notes a time in which something that takes no time was not done.
func (l *Lateness) note(from, to time.Time) {
	if to.Sub(from) <= shortest {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pauses = append(l.pauses, span{from, to})
}

// Within is for how much of the time between two moments the machine, or a
// server that is watched, stood still. A test asks in the end: a pause is noted
// when it is over, and other goroutines may run before that.
func (l *Lateness) Within(from, to time.Time) (still time.Duration) {
	l.mu.Lock()
	pauses := slices.Clone(l.pauses)
	l.mu.Unlock()
	slices.SortFunc(pauses, func(a, b span) int { return a.from.Compare(b.from) })
	for _, p := range pauses { // several may be one pause of the machine
		if p.from.Before(from) {
			p.from = from
		}
		if p.to.After(to) {
			p.to = to
		}
		if p.to.After(p.from) {
			still += p.to.Sub(p.from)
			from = p.to
		}
	}
	return still
}

// Most is the longest that the machine was late, or stood still. Servers mostly
// stand still with it, and a holder loses a lease that ends meanwhile, as it
// must: a test whose leases are short asks before it calls a loss a fault.
func (l *Lateness) Most() time.Duration { return time.Duration(l.most.Load()) }

// Reset forgets what was measured so far.
func (l *Lateness) Reset() { l.most.Store(0) }

// Allow is how much longer than on an idle machine something may take that
// consists of so many steps, each of which may have been late: nothing, on a
// machine that is late by 20 ms at most.
func (l *Lateness) Allow(steps int) time.Duration {
	late := time.Duration(l.most.Load())
	if late <= shortest {
		return 0
	}
	return time.Duration(steps) * late
}

// Undisturbed fails the test when f returns an error. If the machine stood
// still for longer than a node may be silent, f has another chance: it shows
// what happens on a machine that does not. f leaves nothing behind.
func Undisturbed(t testing.TB, f func() error) {
	t.Helper()
	late := Measure(t)
	for end := time.Now().Add(20 * time.Second); ; {
		err := f()
		if err == nil {
			return
		}
		if late.Most() < 50*time.Millisecond || time.Now().After(end) {
			t.Fatalf("%v (the machine was late by up to %v)", err, late.Most())
		}
		t.Logf("once more: the machine was late by up to %v: %v", late.Most(), err)
	}
}
