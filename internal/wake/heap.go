package wake

import (
	"slices"
	"sync/atomic"

	"github.com/quorate/quorate/internal/protocol"
)

// The kinds of schedulers. A Quorum has one of each. Each has one goroutine and
// one heap for all attempts, so the number of goroutines does not grow with the
// number of leases.
const (
	Ticks     = iota // requests of the claims; requests that are due together are sent together
	Deadlines        // the deadlines of rule 5
	schedulers
)

// Alarm says when a scheduler wakes one sleeper.
type Alarm[S any] struct {
	At protocol.Time
	Of *Alarms[S]
}

// Sleeper returns the sleeper to wake.
func (a Alarm[S]) Sleeper() *S { return a.Of.of }

// Alarms is embedded in a sleeper. It holds the time at which each scheduler
// wakes the sleeper; 0 means not at all. The times are written with
// Scheduler.mu held.
type Alarms[S any] struct {
	at [schedulers]atomic.Int64
	of *S
}

// Init sets the sleeper that the alarms belong to. Call it before the first
// alarm is set.
func (a *Alarms[S]) Init(of *S) { a.of = of }

// At returns when the scheduler of this kind wakes the sleeper, 0 if it does
// not.
func (a *Alarms[S]) At(kind int) protocol.Time { return protocol.Time(a.at[kind].Load()) }

// heap orders the alarms of one scheduler by time; Scheduler.mu guards it.
// Setting or dropping an alarm does not search the list: the entry of the
// earlier alarm stays and becomes void. A void entry is removed when it comes
// to the front, when it is at the end of the list, or when more than a fifth of
// the entries are void. container/heap is not used because it would allocate
// for each entry that is pushed or popped.
type heap[S any] struct {
	kind  int
	list  []Alarm[S]
	valid int // how many entries of list are not void
}

const (
	// fork is how many children an entry has. Four entries of 16 bytes fill a
	// cache line.
	fork = 4
	// fewVoids is the number of void entries below which no sweep is made.
	fewVoids = 64
)

// put adds an alarm. If the sleeper had one before, the older entry becomes
// void. The order of the two steps matters: the time is stored in the sleeper
// first, so that a sweep already treats the older entry as void.
func (h *heap[S]) put(alarm Alarm[S]) {
	if alarm.Of.at[h.kind].Swap(int64(alarm.At)) == 0 {
		h.valid++
	}
	if len(h.list) > h.valid+h.valid/4+fewVoids {
		h.sweep()
	}
	h.list = append(h.list, alarm)
	i := len(h.list) - 1
	for ; i > 0 && alarm.At < h.list[(i-1)/fork].At; i = (i - 1) / fork {
		h.list[i] = h.list[(i-1)/fork]
	}
	h.list[i] = alarm
}

// drop disarms a's alarm. Its entry stays in the list as void, and is removed
// later unless it is at the end.
func (h *heap[S]) drop(a *Alarms[S]) {
	if a.at[h.kind].Swap(0) != 0 {
		h.valid--
	}
	for last := len(h.list) - 1; last >= 0 && !h.list[last].valid(h.kind); last-- {
		h.list[last] = Alarm[S]{}
		h.list = h.list[:last]
	}
}

// pop removes the entry at the front, and reports whether it was valid.
func (h *heap[S]) pop() (alarm Alarm[S], valid bool) {
	alarm, last := h.list[0], len(h.list)-1
	moved := h.list[last]
	h.list[last] = Alarm[S]{}
	if h.list = h.list[:last]; last > 0 {
		h.sink(0, moved)
	}
	if valid = alarm.valid(h.kind); valid {
		alarm.Of.at[h.kind].Store(0)
		h.valid--
	}
	return alarm, valid
}

// valid reports whether the alarm is still set: the sleeper has neither dropped
// it nor set another one.
func (a Alarm[S]) valid(kind int) bool { return a.Of.At(kind) == a.At }

// sink puts an entry into position i, which is free, or further down the tree.
func (h *heap[S]) sink(i int, alarm Alarm[S]) {
	for first := fork*i + 1; first < len(h.list); first = fork*i + 1 {
		next := first
		for k := first + 1; k < min(first+fork, len(h.list)); k++ {
			if h.list[k].At < h.list[next].At {
				next = k
			}
		}
		if alarm.At <= h.list[next].At {
			break
		}
		h.list[i] = h.list[next]
		i = next
	}
	h.list[i] = alarm
}

// sweep removes all void entries. It removes at least a fifth of the list, so
// its cost is constant for each entry that became void.
func (h *heap[S]) sweep() {
	h.list = slices.DeleteFunc(h.list, func(alarm Alarm[S]) bool { return !alarm.valid(h.kind) })
	for i, alarm := range slices.Backward(h.list) {
		h.sink(i, alarm)
	}
}
