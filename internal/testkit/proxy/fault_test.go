package proxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Each lost packet doubles the time until the next try.
func TestLoss(t *testing.T) {
	t.Parallel()
	const draws = 100_000
	f := Fault{Loss: 20}
	seen := map[time.Duration]int{}
	for range draws {
		seen[f.late()]++
	}
	for late, share := range map[time.Duration]float64{0: 0.8, resend: 0.16, 3 * resend: 0.032} {
		assert.InEpsilon(t, share*draws, seen[late], 0.2, "%v", late)
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	f := Fault{Delay: 50 * time.Millisecond, Jitter: 10 * time.Millisecond}
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		least, most = min(least, f.late()), max(most, f.late())
	}
	assert.InDelta(t, 40*time.Millisecond, least, float64(time.Millisecond))
	assert.InDelta(t, 60*time.Millisecond, most, float64(time.Millisecond))
}
