package record

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the machine's monotonic clock in nanoseconds, which is the same
// in all processes.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every system for which this builds has it
	}
	return ts.Nano()
}

// Stamp converts t, a time of this process's monotonic clock, to the machine's
// clock. If the process is stopped between the two readings, the result is too
// early, so the process never claims a validity that it does not have. In the
// opposite order it would.
func Stamp(t time.Time) int64 {
	n := Now()
	return n + int64(time.Until(t))
}

// Seconds formats a time of Now.
func Seconds(t int64) string { return fmt.Sprintf("%.6f", float64(t)/1e9) }

// Wait waits for d, or less if ctx ends.
func Wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// hash turns words into a number, so that one seed serves many named random
// sources.
func hash(words ...string) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// Chance returns the random source with the given name.
func Chance(seed uint64, words ...string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hash(words...)))
}
