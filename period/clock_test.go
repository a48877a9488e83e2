package period_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/testkit/memory"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/period"
)

// The clocks of a majority were ahead by three days, and were set right. No
// period is passed over in silence: Wait goes by the clocks as they are, and
// each call says what the nodes refuse, until an operator has emptied these
// nodes as docs/reference/errors.md says.
func TestClocksThatWereAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.NewNodes(3)
		q, err := quorate.New(nodes.Clients(t), nodes.Option())
		require.NoError(t, err)
		defer func() { _ = q.Close() }()
		require.NoError(t, q.Bootstrap(t.Context()))
		p, m := period.New(q, "p", time.Hour), mutex.New(q, "m")
		clocks := func(ahead time.Duration) {
			nodes[0].SetClock(ahead)
			nodes[1].SetClock(ahead)
			time.Sleep(time.Minute) // a beat, and the guard time
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, p.Wait(ctx))
		}
		do := func() (ran bool, start time.Time, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ran, err = p.Do(ctx, func(ctx context.Context) error { start = period.Start(ctx); return nil })
			if err == nil {
				err = m.LockContext(ctx)
			}
			if err == nil {
				m.Unlock()
			}
			return ran, start, err
		}
		clocks(72 * time.Hour)
		ran, start, err := do()
		require.NoError(t, err)
		require.True(t, ran)
		require.Greater(t, time.Until(start), 70*time.Hour)

		clocks(0)
		ran, _, err = do()
		require.False(t, ran)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.ErrorContains(t, err, "too far ahead of its clock")
		_, err = p.Last(soon(t))
		require.ErrorIs(t, err, quorate.ErrNoQuorum)

		for _, n := range nodes[:2] {
			n.Stop()
			n.Start(false)
			time.Sleep(time.Minute)
		}
		ran, start, err = do()
		require.NoError(t, err)
		assert.True(t, ran)
		assert.Equal(t, time.Now().Truncate(time.Hour).UTC(), start)
	})
}
