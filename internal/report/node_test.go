package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A clock is as wrong as the looks at it show, and they are not exact.
func TestSkewThatNoLookCanTell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		offset, trip, skew time.Duration
		warns              bool
	}{
		{30 * time.Microsecond, 100 * time.Microsecond, 0, false},
		{-40 * time.Millisecond, 0, 0, false},
		{-55 * time.Millisecond, 12 * time.Millisecond, 0, false},
		{57 * time.Millisecond, 12 * time.Millisecond, 0, true},
		{-2100 * time.Millisecond, time.Millisecond, 2 * time.Second, true},
		{time.Second, time.Millisecond, 2 * time.Second, false},
	} {
		r := Node{Role: "master", CaughtUp: true, Offset: c.offset, RoundTrip: c.trip}
		r.Warn(c.skew)
		assert.Equal(t, c.warns, len(r.Warnings) > 0, "%+v", c)
	}
}

// A text says "1 replica", and "2 replicas".
func TestReplicasAreCounted(t *testing.T) {
	t.Parallel()
	for n, says := range map[int]string{1: "it has 1 replica and ", 2: "it has 2 replicas and "} {
		r := Node{CaughtUp: true, Replicas: n}
		r.Warn(0)
		assert.Contains(t, r.Warnings[0], says)
	}
}
