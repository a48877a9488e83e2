package embedded_test

import (
	"flag"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/script/conformance"
)

var (
	sequences = flag.Int("sequences", 250, "random sequences held against the model")
	seed      = flag.Uint64("seed", 1, "first seed")
)

// TestConformance holds the scripts to the model on a node whose clock is ours:
// unlike on a real server, every answer is compared to the millisecond.
func TestConformance(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m := miniredis.NewMiniRedis()
	require.NoError(t, m.Start())
	defer m.Close()
	now := time.UnixMilli(1_700_000_000_000)
	m.SetTime(now)
	c := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer func() { _ = c.Close() }()

	conformance.Run(t, conformance.Config{
		Client: c, Sequences: *sequences, Seed: *seed,
		Advance: func(d time.Duration) {
			now = now.Add(d)
			m.SetTime(now)
			m.FastForward(d) // SetTime moves TIME, this the expiries
		},
	})
}
