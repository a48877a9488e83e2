package wake

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
)

type sleeper struct{ alarms Alarms[sleeper] }

// Sleepers come, go and move. The one that is due comes first, at the
// newest of the times that were set for it, and void alarms are not kept for
// long.
func TestWakeHeap(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	h := heap[sleeper]{kind: Deadlines}
	at := map[*Alarms[sleeper]]protocol.Time{}
	var all []*Alarms[sleeper]
	for range 100 {
		all = append(all, new(Alarms[sleeper]))
	}
	for range 20000 {
		a := all[rng.IntN(len(all))]
		switch rng.IntN(4) {
		case 0:
			h.drop(a)
			delete(at, a)
			if k := len(h.list); k > 0 {
				require.Equal(t, at[h.list[k-1].Of], h.list[k-1].At)
			}
		case 1:
			if len(h.list) == 0 {
				continue
			}
			first := protocol.Never
			for _, x := range at {
				first = min(first, x)
			}
			one, valid := h.pop()
			if valid {
				require.Equal(t, at[one.Of], one.At)
				require.Equal(t, first, one.At)
				delete(at, one.Of)
			} else {
				require.NotEqual(t, at[one.Of], one.At)
			}
		default:
			at[a] = 1 + protocol.Time(rng.IntN(50))
			h.put(Alarm[sleeper]{at[a], a})
			require.LessOrEqual(t, len(h.list), h.valid+h.valid/4+fewVoids+1)
		}
		require.Equal(t, len(at), h.valid)
		for a := range at {
			require.Equal(t, at[a], a.At(Deadlines))
			require.Zero(t, a.At(Ticks))
		}
	}
	var order []protocol.Time
	for len(h.list) > 0 {
		if one, valid := h.pop(); valid {
			order = append(order, one.At)
		}
	}
	assert.Len(t, order, len(at))
	assert.True(t, slices.IsSorted(order))
	assert.Zero(t, h.valid)
}

// What is set for an earlier time takes the place of what was set before, and
// what is set for a later one does not.
func TestWokenAtTheEarliest(t *testing.T) {
	t.Parallel()
	began := time.Now()
	woken := make(chan protocol.Time, 10)
	now := func() protocol.Time { return protocol.Time(time.Since(began)) }
	s := NewScheduler(Ticks, now, func(due []Alarm[sleeper]) {
		for _, one := range due {
			woken <- one.At
		}
	})
	defer s.Close()
	a := &sleeper{}
	a.alarms.Init(a)
	soon := now().Add(20 * time.Millisecond)
	for _, at := range []protocol.Time{now().Add(time.Hour), soon, soon.Add(time.Millisecond)} {
		s.Set(&a.alarms, at)
	}
	select {
	case at := <-woken:
		assert.Equal(t, soon, at)
	case <-time.After(10 * time.Second):
		t.Fatal("not woken")
	}
	time.Sleep(20 * time.Millisecond)
	assert.Empty(t, woken, "once")
	assert.Zero(t, a.alarms.At(Ticks))
}
