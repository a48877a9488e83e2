// Package fifo is the queue of what waits: first in, first out.
package fifo

import "slices"

// Queue is a queue that allocates only to grow. Its zero value is empty. It is
// not safe for concurrent use.
type Queue[T any] struct {
	list []T // those before head have gone
	head int
}

// kept is how much room an empty queue keeps. What waits one after the other
// costs nothing, and a burst of thousands does not cost memory for good.
const kept = 1024

func (q *Queue[T]) Len() int { return len(q.list) - q.head }

// First is what Pop would return. There must be something, and the pointer is
// valid until the queue changes.
func (q *Queue[T]) First() *T { return &q.list[q.head] }

// Push reuses the room of those that have gone once it is more than half of
// all, so a queue that never empties does not grow without end. Nor does it
// keep the room of a burst.
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

// Pop takes out the first one. There must be something.
func (q *Queue[T]) Pop() (first T) {
	first, q.list[q.head] = q.list[q.head], first
	if q.head++; q.head == len(q.list) { // an empty queue begins at the front again
		if q.list, q.head = q.list[:0], 0; cap(q.list) > kept {
			q.list = nil
		}
	}
	return first
}

// Return puts back what Pop has just taken out.
func (q *Queue[T]) Return(first T) {
	if q.head > 0 {
		q.head--
		q.list[q.head] = first
		return
	}
	q.list = slices.Insert(q.list, 0, first)
}
