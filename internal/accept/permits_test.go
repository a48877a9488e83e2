package accept_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/semaphore"
)

// The side of TestShare that is about permits.

const permitsInAll = 5

// permits holds one to five permits for a moment, so that they change hands as
// often as can be; or one permit, for so long that changing hands takes hardly
// any of the time, so that an unused permit shows.
func permits(s *semaphore.Weighted, weighted bool) func() (use, error) {
	return func() (u use, err error) {
		asked := time.Now()
		hold := 120 * time.Millisecond
		if u.weight = 1; weighted {
			u.weight, hold = 1+rand.Int64N(permitsInAll), 2*time.Millisecond
		}
		l, err := s.AcquireLease(context.Background(), u.weight)
		if err != nil {
			return u, err
		}
		u.from, u.waited, u.token = time.Now().UnixNano(), int64(time.Since(asked)), l.Token()
		time.Sleep(hold)
		u.to = time.Now().UnixNano()
		if err := l.Release(); err != nil {
			return u, fmt.Errorf("while it was at work: %w", err)
		}
		return u, nil
	}
}

// judgeNumber: never more in use than there are.
func judgeNumber(t *testing.T, uses []use) {
	var used, most, longest int64
	sweep(uses, func(u use, begins bool) {
		if begins {
			used += u.weight
		} else {
			used -= u.weight
		}
		require.LessOrEqual(t, used, int64(permitsInAll))
		most, longest = max(most, used), max(longest, u.waited)
	})
	require.Equal(t, int64(permitsInAll), most, "all are used")
	t.Logf("%d uses; the longest wait was %v", len(uses), time.Duration(longest).Round(time.Millisecond))
}

// judgeOrder: nobody gets in before those who queued earlier, unless both fit.
//
// Tokens tell the order in which claims queued. Times alone do not tell in
// which they got in, for a process may hear of it late. But a claim with a lower
// token that was still used later on was ahead all the time, as a holder or as a
// waiter: there must have been room for both.
func judgeOrder(t *testing.T, uses []use) {
	uses = slices.SortedFunc(slices.Values(uses), func(a, b use) int { return cmp.Compare(a.token, b.token) })
	through := make([]int64, len(uses)) // when all up to this one were through
	for i, u := range uses {
		room := permitsInAll - u.weight
		for j := i - 1; j >= 0 && through[j] > u.from; j-- {
			if uses[j].to > u.from {
				room -= uses[j].weight
			}
		}
		require.GreaterOrEqual(t, room, int64(0), "%v got in while the permits were for others ahead of it", u)
		through[i] = u.to
		if i > 0 {
			through[i] = max(u.to, through[i-1])
		}
	}
}

// judgeDemand: while more than five want one permit each and there is no fault,
// all five are in use but for the moments in which they change hands: 82% of the
// time leaves 26 ms for that, on machines that have much else to do. Were one of
// them not given out, the others could make 80%.
func judgeDemand(t *testing.T, uses []use, quiet []span) {
	quiet[0].from = allInUse(uses) // to start takes a while
	require.Less(t, quiet[0].from, quiet[0].to, "all are in use before the fault")
	for _, q := range quiet {
		var busy int64
		for _, u := range uses {
			busy += u.weight * max(0, min(u.to, q.to)-max(u.from, q.from))
		}
		share := float64(busy) / float64(permitsInAll*(q.to-q.from))
		t.Logf("%.0f%% of the permits in use during %v without a fault", 100*share, time.Duration(q.to-q.from).Round(time.Millisecond))
		require.Greater(t, share, 0.82)
	}
}

// allInUse returns when all permits were in use for the first time.
func allInUse(uses []use) (when int64) {
	var used int64
	sweep(uses, func(u use, begins bool) {
		if !begins {
			used -= u.weight
		} else if used += u.weight; used == permitsInAll && when == 0 {
			when = u.from
		}
	})
	return when
}
