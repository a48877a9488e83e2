// Package fifo is a first-in, first-out queue for requests and callers that
// wait.
package fifo

import "slices"

// Queue is a queue that allocates only when it grows. Its zero value is empty.
// It is not safe for concurrent use.
type Queue[T any] struct {
	list []T // the elements before head have been popped
	head int
}

// kept is the largest capacity that an empty queue keeps. A queue of few
// elements never allocates again, and a burst of thousands does not use memory
// permanently.
const kept = 1024

func (q *Queue[T]) Len() int { return len(q.list) - q.head }

// First returns a pointer to the element that Pop would return, valid until the
// queue changes. The queue must not be empty.
func (q *Queue[T]) First() *T { return &q.list[q.head] }

// Push appends v. Once popped elements take up more than half of a full list,
// it reuses their room, so a queue that never becomes empty does not grow
// without bound. It also gives up the room that only a burst needed.
func (q *Queue[T]) Push(v T) {
	if len(q.list) == cap(q.list) && q.head > len(q.list)/2 {
		n, list := q.Len(), q.list
		if cap(list) > kept && n < cap(list)/4 {
			list = make([]T, n, 2*n)
		}
		copy(list, q.list[q.head:])
		clear(list[n:])
		q.list, q.head = list[:n], 0
	}
	q.list = append(q.list, v)
}

// Pop removes the first element and returns it. The queue must not be empty.
func (q *Queue[T]) Pop() (first T) {
	first, q.list[q.head] = q.list[q.head], first
	if q.head++; q.head == len(q.list) { // an empty queue starts at the front again
		if q.list, q.head = q.list[:0], 0; cap(q.list) > kept {
			q.list = nil
		}
	}
	return first
}

// Return puts the element that Pop has just returned back at the front.
func (q *Queue[T]) Return(first T) {
	if q.head > 0 {
		q.head--
		q.list[q.head] = first
		return
	}
	q.list = slices.Insert(q.list, 0, first)
}
