package core

import (
	"container/heap"
	"sync"
	"sync/atomic"
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
	wake func(a *attempt)

	mu   sync.Mutex
	due  wakeHeap
	next protocol.Time // what the goroutine sleeps for
	kick chan struct{}
	stop chan struct{}
	done chan struct{}
}

// alarms are when each scheduler wakes the attempt, and where that stands in its heap.
type alarms struct {
	at   [schedulers]atomic.Int64
	slot [schedulers]int32 // -1: nowhere
}

func (a *alarms) init() {
	for kind := range schedulers {
		a.at[kind].Store(int64(protocol.Never))
		a.slot[kind] = -1
	}
}

func newScheduler(kind int, now func() protocol.Time, wake func(a *attempt)) *scheduler {
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
	if int64(t) >= a.at[s.kind].Load() {
		return
	}
	s.mu.Lock()
	if a.at[s.kind].Store(int64(t)); a.slot[s.kind] < 0 {
		heap.Push(&s.due, a)
	} else {
		heap.Fix(&s.due, int(a.slot[s.kind]))
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
	if a.slot[s.kind] >= 0 {
		heap.Remove(&s.due, int(a.slot[s.kind]))
	}
	a.at[s.kind].Store(int64(protocol.Never))
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
	var batch []*attempt
	for {
		now := s.now()
		batch = batch[:0]
		s.mu.Lock()
		for s.due.Len() > 0 && s.due.first() <= now {
			batch = append(batch, heap.Pop(&s.due).(*attempt))
		}
		sleep := time.Hour
		if s.next = protocol.Never; s.due.Len() > 0 {
			s.next = s.due.first()
			sleep = s.next.Sub(now)
		}
		s.mu.Unlock()
		if len(batch) > 0 {
			for _, a := range batch {
				s.wake(a)
			}
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

// wakeHeap orders attempts by when they are woken; guarded by scheduler.mu.
type wakeHeap struct {
	kind int
	list []*attempt
}

func (h *wakeHeap) first() protocol.Time { return protocol.Time(h.list[0].at[h.kind].Load()) }

func (h *wakeHeap) Len() int { return len(h.list) }

func (h *wakeHeap) Less(i, j int) bool {
	return h.list[i].at[h.kind].Load() < h.list[j].at[h.kind].Load()
}

func (h *wakeHeap) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].slot[h.kind], h.list[j].slot[h.kind] = int32(i), int32(j)
}

func (h *wakeHeap) Push(x any) {
	a := x.(*attempt)
	a.slot[h.kind] = int32(len(h.list))
	h.list = append(h.list, a)
}

func (h *wakeHeap) Pop() any {
	last := len(h.list) - 1
	a := h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
	a.slot[h.kind] = -1
	a.at[h.kind].Store(int64(protocol.Never)) // whoever sets it meanwhile waits for a.mu, and so for the tick
	return a
}
