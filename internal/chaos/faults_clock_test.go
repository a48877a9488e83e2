package main

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// However long a run is, and however seldom a fault comes to a clock, its drift
// keeps to its bound.
func TestDriftIsBounded(t *testing.T) {
	for _, between := range []int{1, 10, 100, 1000} { // seconds between two faults of one clock
		r := rand.New(rand.NewPCG(1, uint64(between)))
		off, rate, most := time.Duration(0), 1.0, time.Duration(0)
		for range 10 * 3600 {
			if r.IntN(between) == 0 {
				rate = towards(off, []float64{0.995, 1.005}[r.IntN(2)])
			}
			rate = towards(off, rate)
			off += time.Duration((rate - 1) * float64(time.Second))
			most = max(most, off.Abs())
		}
		assert.LessOrEqual(t, most, driftMost+10*time.Millisecond, between)
		assert.Greater(t, most, driftMost/2, "there was hardly a drift")
	}
}

// The speed of a server's clock turns round before it is off by more than the
// bound, and is right in the end.
func TestSteer(t *testing.T) {
	c, err := redistest.Run(1, redistest.WithClock())
	redistest.SkipIfMissing(t, err)
	require.NoError(t, err)
	defer c.Close()
	nd := &node{server: c.Node(0), rate: 1}
	n := &nemesis{nodes: []*node{nd}, roster: newRoster(1), memory: newMemory(newRoster(1).all, time.Second, nil)}
	require.NoError(t, nd.setClock(driftMost-10*time.Millisecond, 1.5))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.steer(ctx, time.Millisecond) }()
	assert.Eventually(t, func() bool {
		nd.mu.Lock()
		defer nd.mu.Unlock()
		return nd.rate < 1
	}, 10*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	assert.EqualValues(t, 1, nd.rate)
	assert.Greater(t, n.apart, driftMost)
}

// The check of guard times allows for a clock that has slipped, and no other
// check does.
func TestSlip(t *testing.T) {
	m := newMemory(newRoster(3).all, time.Second, nil)
	m.slip(1, now())
	assert.True(t, m.lostSince(1, now()-int64(time.Minute)))
	assert.False(t, m.lostSince(1, now()+int64(time.Minute)))
	assert.False(t, m.lostSince(0, 0))
	assert.Empty(t, m.losses())
}
