package wake

// This file owns the times at which claims are woken: to renew, to ask again,
// and to end at their deadlines.

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Scheduler wakes sleepers of a type. It owns one heap and one goroutine, and
// is safe for concurrent use. mu guards due, next, and the times of its kind in
// all Alarms.
// Invariant: mu is held only while the heap changes, never while sending,
// calling back or waiting.
type Scheduler[S any] struct {
	kind int // which of a sleeper's times
	now  func() protocol.Time
	wake func(due []Alarm[S])

	mu   sync.Mutex
	due  heap[S]
	next protocol.Time // what the goroutine sleeps for
	late Stall         // the last great one
	kick chan struct{}
	stop chan struct{}
	done chan struct{}
}

// NewScheduler begins one. Its goroutine runs until Close.
func NewScheduler[S any](kind int, now func() protocol.Time, wake func(due []Alarm[S])) *Scheduler[S] {
	s := &Scheduler[S]{
		kind: kind, now: now, wake: wake, due: heap[S]{kind: kind}, next: protocol.Never,
		kick: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// Set makes sure that a is woken at t or earlier. The sleeper is locked. A
// wake-up that moves to a later time is left where it is: it fires early, finds
// nothing due, and is set again.
func (s *Scheduler[S]) Set(a *Alarms[S], t protocol.Time) {
	t = max(t, 1)
	if at := a.At(s.kind); t == protocol.Never || at != 0 && t >= at {
		return
	}
	s.mu.Lock()
	s.due.put(Alarm[S]{t, a})
	early := t < s.next
	if early {
		s.next = t
	}
	s.mu.Unlock()
	if early {
		s.Look()
	}
}

// Look has the goroutine look at the clock now. Called without s.mu, by Set and
// when the machine wakes up: a timer of the runtime stands still while the
// machine sleeps.
func (s *Scheduler[S]) Look() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Drop removes the wake-up of a: see heap. The sleeper is locked.
func (s *Scheduler[S]) Drop(a *Alarms[S]) {
	s.mu.Lock()
	s.due.drop(a)
	s.mu.Unlock()
}

// Close ends the goroutine and waits for it, so nothing is woken afterwards.
// The caller must hold no sleeper's lock: a batch under way may need it.
func (s *Scheduler[S]) Close() {
	close(s.stop)
	<-s.done
}

// run is the scheduler's goroutine. It takes all that is due at once, so that
// requests of many claims go out in one write for each node, and looks at the
// clock again after each batch: to wake 100,000 claims takes longer than a
// timer's resolution.
func (s *Scheduler[S]) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch []Alarm[S]
	for {
		now := s.now()
		batch = batch[:0]
		s.mu.Lock()
		s.late = s.late.or(Stall{now, now.Sub(s.next)})
		for len(s.due.list) > 0 && s.due.list[0].At <= now {
			if one, valid := s.due.pop(); valid {
				batch = append(batch, one)
			}
		}
		sleep := time.Hour
		if s.next = protocol.Never; len(s.due.list) > 0 {
			s.next = s.due.list[0].At
			sleep = s.next.Sub(now)
		}
		s.mu.Unlock()
		// Without s.mu: sleepers call Set under the locks that wake takes.
		if len(batch) > 0 {
			s.wake(batch)
			clear(batch)
			continue
		}
		timer.Reset(max(sleep, 0))
		select {
		case <-timer.C:
		case <-s.kick:
		case <-s.stop:
			return
		}
	}
}

// Stall is by how much a goroutine ran later than it had to, and when it ran.
// The process was stopped, the machine was suspended or much too busy.
type Stall struct {
	At protocol.Time
	By time.Duration
}

// or returns the greater of two stalls, unless s was long before o. A loss is
// reported within moments, and another stall may follow at once.
func (s Stall) or(o Stall) Stall {
	if o.By > 0 && (o.By > s.By || o.At.Sub(s.At) > time.Second) {
		return o
	}
	return s
}

// Stalled returns the last great stall, the one that has just ended included:
// an answer may reach a sleeper before the scheduler's goroutine runs.
func (s *Scheduler[S]) Stalled(now protocol.Time) Stall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late.or(Stall{now, now.Sub(s.next)})
}
