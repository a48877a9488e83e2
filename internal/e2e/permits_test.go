package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/judge"
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
	require.Empty(t, judge.Overlaps(holds(uses), permitsInAll))
	most, _ := judge.Peak(holds(uses))
	require.EqualValues(t, permitsInAll, most, "all are used")
	t.Logf("%d uses; the longest wait was %v", len(uses), longestWait(uses))
}

// judgeOrder: no claim is granted before those that queued earlier, unless both
// fit.
func judgeOrder(t *testing.T, uses []use) {
	require.Empty(t, judge.Overtakes(holds(uses), permitsInAll))
}

// judgeDemand: while more than five want one permit each and there is no fault,
// all five are in use but for the moments in which they change hands. Those
// take longer where the machine has much else to do, so the share is only
// reported. A permit that is not given out shows in the peak of the second half
// of such a time.
func judgeDemand(t *testing.T, uses []use, quiet []span) {
	for _, q := range quiet {
		share := judge.Used(holds(uses), permitsInAll, q.from, q.to)
		t.Logf("%.0f%% of the permits in use during %v without a fault", 100*share,
			time.Duration(q.to-q.from).Round(time.Millisecond))
		late := only(uses, func(u use) bool { return u.from < q.to && u.to > (q.from+q.to)/2 })
		most, _ := judge.Peak(holds(late))
		require.EqualValues(t, permitsInAll, most, "all are in use")
	}
}
