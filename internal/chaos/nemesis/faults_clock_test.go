package nemesis

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	nd := &fleet.Node{Server: c.Node(0), Rate: 1}
	n := &Nemesis{Nodes: []*fleet.Node{nd}, Roster: fleet.NewRoster(1),
		Memory: fleet.NewMemory(fleet.NewRoster(1).All, time.Second, nil)}
	require.NoError(t, nd.SetClock(driftMost-10*time.Millisecond, 1.5))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.steer(ctx, time.Millisecond) }()
	assert.Eventually(t, func() bool {
		nd.Mu.Lock()
		defer nd.Mu.Unlock()
		return nd.Rate < 1
	}, 10*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	assert.EqualValues(t, 1, nd.Rate)
	assert.Greater(t, n.furthest, driftMost)
}
