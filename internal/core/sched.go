package core

import (
	"container/heap"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// scheduler wakes attempts: one goroutine and one heap for all of a Quorum, so
// that neither grows with the number of leases and what is due together is
// sent together.
type scheduler struct {
	now func() protocol.Time

	mu   sync.Mutex
	due  wakeHeap
	next protocol.Time // what the goroutine sleeps for
	kick chan struct{}
	stop chan struct{}
	done chan struct{}
}

func newScheduler(now func() protocol.Time) *scheduler {
	s := &scheduler{
		now: now, next: protocol.Never,
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
	if int64(t) >= a.wake.Load() {
		return
	}
	s.mu.Lock()
	if a.wake.Store(int64(t)); a.slot < 0 {
		heap.Push(&s.due, a)
	} else {
		heap.Fix(&s.due, int(a.slot))
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
	if a.slot >= 0 {
		heap.Remove(&s.due, int(a.slot))
	}
	a.wake.Store(int64(protocol.Never))
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
		for len(s.due) > 0 && s.due[0].wake.Load() <= int64(now) {
			batch = append(batch, heap.Pop(&s.due).(*attempt))
		}
		sleep := time.Hour
		if s.next = protocol.Never; len(s.due) > 0 {
			s.next = protocol.Time(s.due[0].wake.Load())
			sleep = s.next.Sub(now)
		}
		s.mu.Unlock()
		if len(batch) > 0 {
			for _, a := range batch {
				a.tick() // never blocks: what cannot be written at once is the link's to write
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

// wakeHeap orders attempts by wake; guarded by scheduler.mu.
type wakeHeap []*attempt

func (h wakeHeap) Len() int           { return len(h) }
func (h wakeHeap) Less(i, j int) bool { return h[i].wake.Load() < h[j].wake.Load() }
func (h wakeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = int32(i), int32(j)
}

func (h *wakeHeap) Push(x any) {
	a := x.(*attempt)
	a.slot = int32(len(*h))
	*h = append(*h, a)
}

func (h *wakeHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	a.slot = -1
	a.wake.Store(int64(protocol.Never)) // whoever sets it meanwhile waits for a.mu, and so for the tick
	return a
}
