package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

func TestSlowDisk(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1, redistest.WithAOF("always"), redistest.WithDisk(), redistest.WithClock()).Node(0)
	ctx := t.Context()
	require.NoError(t, s.Client().Set(ctx, "k", "fast", 0).Err())
	require.NoError(t, s.SetDisk(200*time.Millisecond))
	began := time.Now()
	require.NoError(t, s.Client().Set(ctx, "k", "slow", 0).Err())
	assert.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
	assert.InDelta(t, 0, ahead(t, s), float64(within), "its clock is another matter")
}

// What was answered is on the disk, and what is not on the disk is gone.
func TestCutPower(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1, redistest.WithAOF("always"), redistest.WithDisk()).Node(0)
	ctx := t.Context()
	require.NoError(t, s.Client().Set(ctx, "answered", "yes", 0).Err())
	require.NoError(t, s.SetDisk(time.Minute))
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	require.Error(t, s.Client().Set(soon, "lost", "yes", 0).Err())

	gone, err := s.CutPower()
	require.NoError(t, err)
	assert.Positive(t, gone)
	require.NoError(t, s.SetDisk(0))
	require.NoError(t, s.Restart())
	assert.Equal(t, "yes", s.Client().Get(ctx, "answered").Val())
	assert.ErrorIs(t, s.Client().Get(ctx, "lost").Err(), redis.Nil)

	require.NoError(t, s.Client().Set(ctx, "again", "yes", 0).Err())
	gone, err = s.CutPower()
	require.NoError(t, err)
	assert.Zero(t, gone)
}

func TestSetDiskSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1).Node(0)
	assert.ErrorContains(t, s.SetDisk(time.Second), "without WithDisk")
	_, err := s.CutPower()
	assert.ErrorContains(t, err, "without WithDisk")
}
