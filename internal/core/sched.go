package core

// This file owns the times at which attempts are woken: to renew, to ask again,
// and to end at their deadlines.

import (
	"slices"
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

// scheduler wakes attempts. It owns one heap and one goroutine, and is safe for
// concurrent use. mu guards due, next, and the alarms of its kind in all
// attempts.
// Invariant: mu is held only while the heap changes, never while sending,
// calling back or waiting.
type scheduler struct {
	kind int // which of an attempt's times
	now  func() protocol.Time
	wake func(as []alarm)

	mu   sync.Mutex
	due  wakeHeap
	next protocol.Time // what the goroutine sleeps for
	late stall         // the last great one
	kick chan struct{}
	stop chan struct{}
	done chan struct{}
}

type alarm struct {
	at protocol.Time
	a  *attempt
}

// alarms are when an attempt is woken by each scheduler, 0: not at all. They
// are written with scheduler.mu held.
type alarms [schedulers]atomic.Int64

// The goroutine runs until close.
func newScheduler(kind int, now func() protocol.Time, wake func(as []alarm)) *scheduler {
	s := &scheduler{
		kind: kind, now: now, wake: wake, due: wakeHeap{kind: kind}, next: protocol.Never,
		kick: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// set makes sure that a is woken at t or earlier. Called with a.mu held. A
// wake-up that moves to a later time is left where it is: it fires early, finds
// nothing due, and is set again. So the common case, a claim whose answers
// arrive, needs no work here.
func (s *scheduler) set(a *attempt, t protocol.Time) {
	t = max(t, 1)
	if at := a.alarms[s.kind].Load(); t == protocol.Never || at != 0 && t >= protocol.Time(at) {
		return
	}
	s.mu.Lock()
	s.due.put(alarm{t, a})
	early := t < s.next
	if early {
		s.next = t
	}
	s.mu.Unlock()
	if early {
		s.look()
	}
}

// look has the goroutine look at the clock now. Called without s.mu, by set and
// when the machine wakes up: a timer of the runtime stands still while the
// machine sleeps. One signal that waits is enough, since the goroutine reads
// the clock afresh.
func (s *scheduler) look() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// drop removes the wake-up of a: see wakeHeap. Called with a.mu held.
func (s *scheduler) drop(a *attempt) {
	s.mu.Lock()
	s.due.drop(a)
	s.mu.Unlock()
}

// close ends the goroutine and waits for it, so no attempt is woken afterwards.
// The caller must hold no attempt's lock: a batch under way may need it.
func (s *scheduler) close() {
	close(s.stop)
	<-s.done
}

// run is the scheduler's goroutine. It takes all that is due at once, so that
// requests of many claims go out in one write for each node, and looks at the
// clock again after each batch: to wake 100,000 claims takes longer than a
// timer's resolution.
func (s *scheduler) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch []alarm
	for {
		now := s.now()
		batch = batch[:0]
		s.mu.Lock()
		s.late = s.late.or(stall{now, now.Sub(s.next)})
		for len(s.due.list) > 0 && s.due.list[0].at <= now {
			if one, valid := s.due.pop(); valid {
				batch = append(batch, one)
			}
		}
		sleep := time.Hour
		if s.next = protocol.Never; len(s.due.list) > 0 {
			s.next = s.due.list[0].at
			sleep = s.next.Sub(now)
		}
		s.mu.Unlock()
		// Without s.mu: attempts call set under the locks that wake takes.
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

// stall is by how much a goroutine ran later than it had to, and when it ran.
// The process was stopped, the machine was suspended or much too busy.
type stall struct {
	at protocol.Time
	by time.Duration
}

// or returns the greater of two stalls, unless s was long before o. A loss is
// reported within moments, and another stall may follow at once.
func (s stall) or(o stall) stall {
	if o.by > 0 && (o.by > s.by || o.at.Sub(s.at) > time.Second) {
		return o
	}
	return s
}

// stalled returns the last great stall, the one that has just ended included:
// an answer may reach an attempt before the scheduler's goroutine runs.
func (s *scheduler) stalled(now protocol.Time) stall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late.or(stall{now, now.Sub(s.next)})
}

// wakeHeap orders alarms by their times; guarded by scheduler.mu. An attempt
// that sets or drops its alarm moves nothing in the heap: the earlier alarm
// becomes void. A void alarm is removed when its turn comes, when it is the
// last in the list (that of a lock that was released at once), or when more
// than a fifth are void. So the order depends on the times in the list alone,
// and no attempt is read to keep it. container/heap would allocate for each
// entry that comes or goes.
type wakeHeap struct {
	kind  int
	list  []alarm
	valid int // of those
}

const (
	// fork is how many children an entry has: 4 * 16 bytes fill a cache line.
	fork = 4
	// fewVoids is how many void alarms are not worth a sweep.
	fewVoids = 64
)

// put adds an alarm; one that the attempt had before is void. The order of the
// two steps matters: the alarm is stored in the attempt first, so a sweep takes
// the older entry for void.
func (h *wakeHeap) put(one alarm) {
	if one.a.alarms[h.kind].Swap(int64(one.at)) == 0 {
		h.valid++
	}
	if len(h.list) > h.valid+h.valid/4+fewVoids {
		h.sweep()
	}
	h.list = append(h.list, one)
	i := len(h.list) - 1
	for ; i > 0 && one.at < h.list[(i-1)/fork].at; i = (i - 1) / fork {
		h.list[i] = h.list[(i-1)/fork]
	}
	h.list[i] = one
}

func (h *wakeHeap) drop(a *attempt) {
	if a.alarms[h.kind].Swap(0) != 0 {
		h.valid--
	}
	for last := len(h.list) - 1; last >= 0 && !h.list[last].is(h.kind); last-- {
		h.list[last] = alarm{}
		h.list = h.list[:last]
	}
}

// pop removes the first alarm, and reports whether it was still valid.
func (h *wakeHeap) pop() (one alarm, valid bool) {
	one, last := h.list[0], len(h.list)-1
	moved := h.list[last]
	h.list[last] = alarm{}
	if h.list = h.list[:last]; last > 0 {
		h.sink(0, moved)
	}
	if valid = one.is(h.kind); valid {
		one.a.alarms[h.kind].Store(0)
		h.valid--
	}
	return one, valid
}

// is reports whether the attempt has set no other alarm since.
func (one alarm) is(kind int) bool { return one.a.alarms[kind].Load() == int64(one.at) }

// sink puts one where i is free, or below that.
func (h *wakeHeap) sink(i int, one alarm) {
	for first := fork*i + 1; first < len(h.list); first = fork*i + 1 {
		next := first
		for k := first + 1; k < min(first+fork, len(h.list)); k++ {
			if h.list[k].at < h.list[next].at {
				next = k
			}
		}
		if one.at <= h.list[next].at {
			break
		}
		h.list[i] = h.list[next]
		i = next
	}
	h.list[i] = one
}

// sweep removes all void alarms. A sweep removes at least a fifth of the list,
// so its cost is a constant for each alarm that became void.
func (h *wakeHeap) sweep() {
	h.list = slices.DeleteFunc(h.list, func(one alarm) bool { return !one.is(h.kind) })
	for i, one := range slices.Backward(h.list) {
		h.sink(i, one)
	}
}
