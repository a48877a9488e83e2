package fifo

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What comes first leaves first, whatever is put back in between.
func TestOrder(t *testing.T) {
	t.Parallel()
	var q Queue[int]
	var want []int
	for i := range 100_000 {
		switch rand.N(6) {
		case 0, 1, 2, 3:
			q.Push(i)
			want = append(want, i)
		default:
			for len(want) > 0 && rand.N(64) > 0 {
				assert.Equal(t, want[0], *q.First())
				first := q.Pop()
				if rand.N(4) == 0 {
					q.Return(first)
				} else {
					want = want[1:]
				}
			}
		}
		if !assert.Len(t, want, q.Len()) {
			return
		}
	}
}

// Neither a queue that never empties nor one that has had a burst keeps room
// that it does not need.
func TestRoom(t *testing.T) {
	t.Parallel()
	var q Queue[*int]
	for range 100 {
		q.Push(new(int))
	}
	for range 1_000_000 {
		q.Push(q.Pop())
	}
	assert.Less(t, cap(q.list), 1024)
	for range 10_000 {
		q.Push(new(int))
	}
	for q.Len() > 0 {
		q.Pop()
	}
	assert.Zero(t, cap(q.list))
	for range 100_000 {
		q.Push(new(int))
	}
	for q.Len() > 10 {
		q.Pop()
	}
	for range 100_000 {
		q.Push(q.Pop())
	}
	assert.LessOrEqual(t, cap(q.list), kept, "it has not emptied since")
}
