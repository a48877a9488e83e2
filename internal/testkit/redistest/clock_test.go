package redistest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// within is how far a clock may be from what it should show, on a machine that
// does other things too.
const within = 250 * time.Millisecond

// ahead is how far the server's clock is ahead of the machine's. An answer that
// was long on its way tells too little, so the server is asked again.
func ahead(t *testing.T, s *redistest.Server) time.Duration {
	t.Helper()
	for {
		before := time.Now()
		shows, err := s.Client().Time(t.Context()).Result()
		require.NoError(t, err)
		if took := time.Since(before); took < within/2 {
			return shows.Sub(before.Add(took / 2))
		}
	}
}

func TestClockJumps(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1, redistest.WithClock()).Node(0)
	assert.InDelta(t, 0, ahead(t, s), float64(within))
	for _, offset := range []time.Duration{time.Minute, -time.Minute, 1500 * time.Millisecond, 0} {
		require.NoError(t, s.SetClock(offset, 1))
		assert.InDelta(t, offset, ahead(t, s), float64(within), "the very next answer shows it")
		assert.WithinDuration(t, time.Now().Add(offset), s.Clock(), within)
	}
}

// Keys end by the wall clock, and what the server does in the background goes
// by the monotonic one. So it is on a machine whose clock is set.
func TestTimersDoNotJump(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1, redistest.WithClock()).Node(0)
	ctx := t.Context()
	require.NoError(t, s.Client().Set(ctx, "k", "v", 30*time.Second).Err())

	require.NoError(t, s.SetClock(-time.Minute, 1))
	assert.Greater(t, s.Client().PTTL(ctx, "k").Val(), 80*time.Second)
	// A timer that had jumped as well would not go off for a minute.
	assert.Eventually(t, func() bool {
		b := behind(t, s)
		return 50 < b && b < 70
	}, 5*time.Second, 10*time.Millisecond)

	require.NoError(t, s.SetClock(time.Minute, 1))
	assert.Zero(t, s.Client().Exists(ctx, "k").Val())
}

// behind is by how many seconds the time is behind the machine's that a timer
// of the server writes down ten times a second.
func behind(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	info, err := s.Client().InfoMap(t.Context(), "server").Result()
	require.NoError(t, err)
	const bits = 1<<24 - 1 // of it are kept
	return (time.Now().Unix() - must(strconv.ParseInt(info["Server"]["lru_clock"], 10, 64))) & bits
}

func TestClockDrifts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1, redistest.WithClock()).Node(0)
	time.Sleep(300 * time.Millisecond) // the rate counts from now, not from the start of the process
	require.NoError(t, s.SetClock(0, 2))
	set := time.Now()
	assert.InDelta(t, 0, ahead(t, s), float64(within))
	assert.Eventually(t, func() bool {
		return ahead(t, s) > 500*time.Millisecond
	}, 10*time.Second, 10*time.Millisecond)
	assert.InDelta(t, time.Since(set), ahead(t, s), float64(within))

	before := ahead(t, s)
	require.NoError(t, s.ShiftClock(time.Minute, 0.5))
	assert.InDelta(t, before+time.Minute, ahead(t, s), float64(within))
}

// A change of the rate is no jump, not by a microsecond, however long the
// server has run. A clock that jumps by a few milliseconds makes clients take
// the node for one that has lost its data.
func TestRateChangesWithoutAJump(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1, redistest.WithClock()).Node(0)
	require.NoError(t, s.Client().Ping(t.Context()).Err())
	for _, rate := range []float64{100, 1, 50} {
		require.NoError(t, s.ShiftClock(0, rate))
		from := s.Clock()
		shows, err := s.Client().Time(t.Context()).Result()
		require.NoError(t, err)
		to := s.Clock()
		assert.False(t, shows.Before(from.Truncate(time.Microsecond)) || shows.After(to),
			"rate %v: %v is not between %v and %v", rate, shows, from, to)
	}
}

// It is the machine's clock: a new life of the server finds it as it is, and a
// frozen one when it goes on.
func TestClockOutlivesTheServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1, redistest.WithClock()).Node(0)
	require.NoError(t, s.SetClock(time.Minute, 1))
	require.NoError(t, s.Restart())
	assert.InDelta(t, time.Minute, ahead(t, s), float64(within))

	require.NoError(t, s.Kill())
	require.NoError(t, s.SetClock(-time.Minute, 2))
	set := time.Now()
	time.Sleep(2 * within) // so that a clock that stood still shows
	require.NoError(t, s.Restart())
	assert.InDelta(t, -time.Minute+time.Since(set), ahead(t, s), float64(within))
}

func TestSetClockSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, 1).Node(0)
	assert.ErrorContains(t, s.SetClock(time.Minute, 1), "without WithClock")
	assert.WithinDuration(t, time.Now(), s.Clock(), within)

	c := redistest.Start(t, 1, redistest.WithClock())
	assert.ErrorContains(t, c.Node(0).SetClock(0, 0), "a rate of 0")
	require.NoError(t, c.Close())
	assert.ErrorIs(t, c.Node(0).SetClock(0, 1), redistest.ErrClosed)
}

// A loader does not say that a program has got none of the libraries that it
// was to load, as one without shared libraries does.
func TestServerWithoutItsClock(t *testing.T) {
	binary, err := exec.LookPath(redistest.Binary)
	if err != nil {
		t.Skip(redistest.ErrNotInstalled)
	}
	bin := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\nunset LD_PRELOAD\nexec %s \"$@\"\n", binary)
	require.NoError(t, os.WriteFile(filepath.Join(bin, redistest.Binary), []byte(text), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, err = redistest.Run(1, redistest.WithClock())
	redistest.SkipIfMissing(t, err)
	assert.ErrorContains(t, err, bin+"/redis-server has not loaded it")
}
