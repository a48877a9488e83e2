package core

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// A Quorum has two schedulers: one goroutine and one heap each for all of its
// attempts, so that neither grows with the number of leases.
const (
	ticks     = iota // for what the claims want to do; what is due together is sent together
	deadlines        // for rule 5
	schedulers
)

// scheduler wakes attempts.
//
// That of the deadlines takes the place of a timer for each hold, and is no less
// punctual: a goroutine of its own sleeps until the first one, on the same clock
// of the runtime, and starts a goroutine for each that is due, as those timers
// would. It waits for nothing else: what it locks is held by others while they
// move something in the heap, and by nobody who sends, calls back or waits. So
// nothing that goes on with any claim, nor an owner or observer that does not
// return, delays the deadline of another.
type scheduler struct {
	kind int // which of an attempt's times
	now  func() protocol.Time
	wake func(as []alarm)

	mu   sync.Mutex
	due  wakeHeap
	next protocol.Time // what the goroutine sleeps for
	kick chan struct{}
	stop chan struct{}
	done chan struct{}
}

// alarm is when an attempt is woken.
type alarm struct {
	at protocol.Time
	a  *attempt
}

// alarms are where an attempt stands in the heap of each scheduler; -1: nowhere.
type alarms [schedulers]int32

func (a *alarms) init() {
	for kind := range a {
		a[kind] = -1
	}
}

func newScheduler(kind int, now func() protocol.Time, wake func(as []alarm)) *scheduler {
	s := &scheduler{
		kind: kind, now: now, wake: wake, due: wakeHeap{kind: kind}, next: protocol.Never,
		kick: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// set makes sure that a is woken at t or earlier. Called with a.mu held.
//
// A wake-up that moves to a later time is left where it is: it fires early,
// finds nothing due, and is set anew. That spares the common case, a claim
// whose answers arrive, the work of moving it.
func (s *scheduler) set(a *attempt, t protocol.Time) {
	s.mu.Lock()
	switch slot := a.alarms[s.kind]; {
	case slot < 0 && t == protocol.Never:
	case slot < 0:
		s.due.push(alarm{t, a})
	case t < s.due.list[slot].at:
		s.due.list[slot].at = t
		s.due.fix(int(slot))
	}
	early := t < s.next
	if early {
		s.next = t
	}
	s.mu.Unlock()
	if early {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

// drop forgets a. Called with a.mu held.
func (s *scheduler) drop(a *attempt) {
	s.mu.Lock()
	if slot := a.alarms[s.kind]; slot >= 0 {
		s.due.remove(int(slot))
	}
	s.mu.Unlock()
}

func (s *scheduler) close() {
	close(s.stop)
	<-s.done
}

func (s *scheduler) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch []alarm
	for {
		now := s.now()
		batch = batch[:0]
		s.mu.Lock()
		// Whoever sets one that has been taken out waits for a.mu, and so for the tick.
		for len(s.due.list) > 0 && s.due.list[0].at <= now {
			batch = append(batch, s.due.remove(0))
		}
		sleep := time.Hour
		if s.next = protocol.Never; len(s.due.list) > 0 {
			s.next = s.due.list[0].at
			sleep = s.next.Sub(now)
		}
		s.mu.Unlock()
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

// wakeHeap orders attempts by when they are woken; guarded by scheduler.mu. The
// times are in the heap itself: to look for them in attempts, of which there may
// be a great many, takes longer than all the rest. For the same reason it is not
// container/heap, which makes an object of each that comes or goes.
type wakeHeap struct {
	kind int
	list []alarm
}

// put lets a stand at a place.
func (h *wakeHeap) put(i int, one alarm) {
	h.list[i] = one
	one.a.alarms[h.kind] = int32(i)
}

// fix moves what stands at a place to where it belongs.
func (h *wakeHeap) fix(i int) {
	one := h.list[i]
	for i > 0 && one.at < h.list[(i-1)/2].at {
		h.put(i, h.list[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		next := 2*i + 1
		if next+1 < len(h.list) && h.list[next+1].at < h.list[next].at {
			next++
		}
		if next >= len(h.list) || one.at <= h.list[next].at {
			break
		}
		h.put(i, h.list[next])
		i = next
	}
	h.put(i, one)
}

func (h *wakeHeap) push(one alarm) {
	h.list = append(h.list, one)
	h.fix(len(h.list) - 1)
}

// remove takes out what stands at a place.
func (h *wakeHeap) remove(i int) alarm {
	one, last := h.list[i], len(h.list)-1
	one.a.alarms[h.kind] = -1
	moved := h.list[last]
	h.list[last] = alarm{}
	if h.list = h.list[:last]; i < last {
		h.list[i] = moved
		h.fix(i)
	}
	return one
}
