package core

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

// Attempts come, go and move; the first is always the one that is due first, and
// each knows where it stands.
func TestWakeHeap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := wakeHeap{kind: deadlines}
	at := map[*attempt]protocol.Time{}
	for range 3000 {
		switch {
		case len(at) < 100 && rng.IntN(2) == 0:
			a := &attempt{}
			a.alarms.init()
			at[a] = protocol.Time(rng.IntN(50))
			h.push(alarm{at[a], a})
		case len(at) == 0:
		case rng.IntN(2) == 0:
			i := rng.IntN(len(h.list))
			one := h.remove(i)
			assert.Equal(t, at[one.a], one.at)
			assert.EqualValues(t, -1, one.a.alarms[deadlines])
			delete(at, one.a)
		default:
			i := rng.IntN(len(h.list))
			at[h.list[i].a] = protocol.Time(rng.IntN(50))
			h.list[i].at = at[h.list[i].a]
			h.fix(i)
		}
		require.Len(t, h.list, len(at))
		for i, one := range h.list {
			require.Equal(t, at[one.a], one.at)
			require.EqualValues(t, i, one.a.alarms[deadlines])
			require.EqualValues(t, -1, one.a.alarms[ticks])
		}
		if len(at) > 0 {
			first := protocol.Never
			for _, x := range at {
				first = min(first, x)
			}
			require.Equal(t, first, h.list[0].at)
		}
	}
	var order []protocol.Time
	for len(h.list) > 0 {
		order = append(order, h.remove(0).at)
	}
	assert.True(t, slices.IsSorted(order))
}
