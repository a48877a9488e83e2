package wake

// This file owns the alarms, and the order of those of one scheduler.

import (
	"slices"
	"sync/atomic"

	"github.com/quorate/quorate/internal/protocol"
)

// A Quorum has two schedulers: one goroutine and one heap each for all of its
// attempts, so that neither grows with the number of leases.
const (
	Ticks     = iota // for what the claims want to do; what is due together is sent together
	Deadlines        // for rule 5
	schedulers
)

// Alarm is one time of a sleeper.
type Alarm[S any] struct {
	At protocol.Time
	Of *Alarms[S]
}

// Sleeper is the one that is to be woken.
func (one Alarm[S]) Sleeper() *S { return one.Of.of }

// Alarms are a part of a sleeper: when each scheduler wakes it, 0: not at all.
// They are written with Scheduler.mu held.
type Alarms[S any] struct {
	at [schedulers]atomic.Int64
	of *S
}

// Init says whose alarms they are, before the first is set.
func (a *Alarms[S]) Init(of *S) { a.of = of }

// At is when a scheduler wakes the sleeper, 0: not at all.
func (a *Alarms[S]) At(kind int) protocol.Time { return protocol.Time(a.at[kind].Load()) }

// heap orders alarms by their times; guarded by Scheduler.mu. A sleeper that
// sets or drops its alarm moves nothing: the earlier alarm becomes void. A void
// alarm is removed when its turn comes, when it is the last in the list, or
// when more than a fifth are void. container/heap would allocate for each entry
// that comes or goes.
type heap[S any] struct {
	kind  int
	list  []Alarm[S]
	valid int // of those
}

const (
	// fork is how many children an entry has: 4 * 16 bytes fill a cache line.
	fork = 4
	// fewVoids is how many void alarms are not worth a sweep.
	fewVoids = 64
)

// put adds an alarm; one that the sleeper had before is void. The order of the
// two steps matters: the alarm is stored in the sleeper first, so a sweep takes
// the older entry for void.
func (h *heap[S]) put(one Alarm[S]) {
	if one.Of.at[h.kind].Swap(int64(one.At)) == 0 {
		h.valid++
	}
	if len(h.list) > h.valid+h.valid/4+fewVoids {
		h.sweep()
	}
	h.list = append(h.list, one)
	i := len(h.list) - 1
	for ; i > 0 && one.At < h.list[(i-1)/fork].At; i = (i - 1) / fork {
		h.list[i] = h.list[(i-1)/fork]
	}
	h.list[i] = one
}

func (h *heap[S]) drop(a *Alarms[S]) {
	if a.at[h.kind].Swap(0) != 0 {
		h.valid--
	}
	for last := len(h.list) - 1; last >= 0 && !h.list[last].is(h.kind); last-- {
		h.list[last] = Alarm[S]{}
		h.list = h.list[:last]
	}
}

// pop removes the first alarm, and reports whether it was still valid.
func (h *heap[S]) pop() (one Alarm[S], valid bool) {
	one, last := h.list[0], len(h.list)-1
	moved := h.list[last]
	h.list[last] = Alarm[S]{}
	if h.list = h.list[:last]; last > 0 {
		h.sink(0, moved)
	}
	if valid = one.is(h.kind); valid {
		one.Of.at[h.kind].Store(0)
		h.valid--
	}
	return one, valid
}

// is reports whether the sleeper has set no other alarm since.
func (one Alarm[S]) is(kind int) bool { return one.Of.At(kind) == one.At }

// sink puts one where i is free, or below that.
func (h *heap[S]) sink(i int, one Alarm[S]) {
	for first := fork*i + 1; first < len(h.list); first = fork*i + 1 {
		next := first
		for k := first + 1; k < min(first+fork, len(h.list)); k++ {
			if h.list[k].At < h.list[next].At {
				next = k
			}
		}
		if one.At <= h.list[next].At {
			break
		}
		h.list[i] = h.list[next]
		i = next
	}
	h.list[i] = one
}

// sweep removes all void alarms. A sweep removes at least a fifth of the list,
// so its cost is a constant for each alarm that became void.
func (h *heap[S]) sweep() {
	h.list = slices.DeleteFunc(h.list, func(one Alarm[S]) bool { return !one.is(h.kind) })
	for i, one := range slices.Backward(h.list) {
		h.sink(i, one)
	}
}
