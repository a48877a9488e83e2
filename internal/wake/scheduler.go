package wake

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Scheduler wakes sleepers when their alarms are due. It has one heap and one
// goroutine, and is safe for concurrent use. mu guards due, next and late, and
// the times of its kind in all Alarms.
// Invariant: mu is held only while the heap changes, never while a request is
// sent, a callback runs or a goroutine waits.
type Scheduler[S any] struct {
	kind int // Ticks or Deadlines
	now  func() protocol.Time
	wake func(due []Alarm[S])

	mu   sync.Mutex
	due  heap[S]
	next protocol.Time // until when the goroutine sleeps
	late Stall         // the stall that explains a loss best; see Stall.or
	kick chan struct{} // wakes the goroutine
	stop chan struct{}
	done chan struct{}
}

// NewScheduler starts a scheduler, which calls wake with the alarms that are
// due. Its goroutine runs until Close.
func NewScheduler[S any](kind int, now func() protocol.Time, wake func(due []Alarm[S])) *Scheduler[S] {
	s := &Scheduler[S]{
		kind: kind, now: now, wake: wake, due: heap[S]{kind: kind}, next: protocol.Never,
		kick: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// Set makes sure that the sleeper of a is woken at t or earlier. The caller
// holds the lock of the sleeper. If t is later than the alarm that is set, Set
// changes nothing: the alarm fires early, the sleeper finds nothing due, and
// calls Set again.
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
		s.Poke()
	}
}

// Poke wakes the goroutine, which then checks the clock. Set calls it, and so
// does the Quorum after the machine was suspended, because a timer of the Go
// runtime stands still during a suspension. The caller does not hold s.mu.
func (s *Scheduler[S]) Poke() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Drop disarms the alarm of a. The caller holds the lock of the sleeper.
func (s *Scheduler[S]) Drop(a *Alarms[S]) {
	s.mu.Lock()
	s.due.drop(a)
	s.mu.Unlock()
}

// Close ends the goroutine and waits for it, so nothing is woken after Close
// returns. The caller must not hold the lock of a sleeper: a wake call that is
// running may need it.
func (s *Scheduler[S]) Close() {
	close(s.stop)
	<-s.done
}

// run is the scheduler's goroutine. It passes all alarms that are due to wake
// in one batch, so that the requests of many claims go out in one write for
// each node. It checks the clock again after each batch, since waking 100,000
// claims takes longer than the resolution of a timer.
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
			if alarm, valid := s.due.pop(); valid {
				batch = append(batch, alarm)
			}
		}
		sleep := time.Hour
		if s.next = protocol.Never; len(s.due.list) > 0 {
			s.next = s.due.list[0].At
			sleep = s.next.Sub(now)
		}
		s.mu.Unlock()
		// Called without s.mu: sleepers call Set while they hold the locks that
		// wake takes.
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

// Stall says when a goroutine ran too late, and by how much. The cause is that
// the process was stopped, the machine was suspended, or it was far too busy.
type Stall struct {
	At protocol.Time
	By time.Duration
}

// or returns the longer of two stalls, but prefers o if it came more than a
// second after s. A loss is reported within moments after the stall that caused
// it, and another short stall may follow at once.
func (s Stall) or(o Stall) Stall {
	if o.By > 0 && (o.By > s.By || o.At.Sub(s.At) > time.Second) {
		return o
	}
	return s
}

// Stalled returns the last long stall. That includes a stall that has just
// ended and that the goroutine has not seen: an answer may reach a sleeper
// before the goroutine runs.
func (s *Scheduler[S]) Stalled(now protocol.Time) Stall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late.or(Stall{now, now.Sub(s.next)})
}
