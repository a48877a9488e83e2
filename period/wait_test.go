package period_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/period"
	"github.com/quorate/quorate/quoratetest"
)

// A Wait whose context has ended takes no period away from the next Wait.
func TestWaitCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := period.New(quoratetest.New(t, 3).Quorum(), "report", time.Hour)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Wait(ended), context.Canceled)
		called := time.Now()
		require.NoError(t, p.Wait(soon(t)))
		require.Zero(t, time.Since(called))

		// A context that ends as the next period begins.
		at, stop := context.WithDeadline(t.Context(), time.Now().Truncate(time.Hour).Add(time.Hour))
		defer stop()
		if p.Wait(at) != nil {
			called = time.Now()
			require.NoError(t, p.Wait(soon(t)))
			require.Less(t, time.Since(called), time.Minute)
		}
	})
}

func TestZoneThatIsNil(t *testing.T) {
	assert.PanicsWithValue(t,
		"quorate: period.WithZone: the location is nil; check the error of time.LoadLocation",
		func() { period.WithZone(nil) })
}
