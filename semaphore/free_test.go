package semaphore

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// What counts is what a majority could have: nodes that do not answer are taken
// to have it too.
func TestFree(t *testing.T) {
	t.Parallel()
	a, b := script.Claim{ID: "a", Weight: 2, Voted: true}, script.Claim{ID: "b", Weight: 1, Voted: true}
	old, lighter := script.Claim{ID: "old", Weight: 4, Voted: true},
		script.Claim{ID: "a", Weight: 1, Voted: true}
	of := func(claims ...script.Claim) script.Queue {
		q := script.Queue{Queued: len(claims), Claims: claims}
		for _, c := range claims {
			if c.Voted {
				q.Voted++
			}
		}
		return q
	}
	crowded := of(a)
	crowded.Queued, crowded.Voted = 3, 3
	waits := of(a)
	waits.Queued = 2
	for what, c := range map[string]struct {
		queues map[int]script.Queue
		want   uint64
	}{
		"nothing":                {map[int]script.Queue{0: of(), 1: of(), 2: of()}, 5},
		"example":                {map[int]script.Queue{0: of(a, b), 1: of(a, b), 2: of(b, old)}, 2},
		"a minority":             {map[int]script.Queue{0: of(), 1: of(), 2: of(old)}, 5},
		"one does not answer":    {map[int]script.Queue{0: of(), 2: of(old)}, 1},
		"it is lighter at a new": {map[int]script.Queue{0: of(a), 1: of(lighter), 2: of(a)}, 4},
		"not shown":              {map[int]script.Queue{0: crowded, 1: crowded, 2: of()}, 1},
		"not shown by one":       {map[int]script.Queue{0: crowded, 1: of(a), 2: of(a)}, 3},
		"a waiter is not shown":  {map[int]script.Queue{0: waits, 1: waits, 2: of(a)}, 0},
		"a waiter at one":        {map[int]script.Queue{0: waits, 1: of(a), 2: of(a)}, 3},
		"more than there are":    {map[int]script.Queue{0: of(a, old), 1: of(a, old), 2: of()}, 0},
	} {
		assert.Equal(t, c.want, free(5, c.queues, protocol.Majority(3)), what)
	}
	two := protocol.Quorums{Present: 0b00111, Next: 0b11100}
	assert.EqualValues(t, 3, free(5, map[int]script.Queue{0: of(a), 1: of(a), 2: of(), 3: of(), 4: of()}, two),
		"a majority of one of two sets is enough to count")
}
