package record

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// Now is the machine's monotonic clock in nanoseconds, the same in all its
// processes.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every system that this builds on has it
	}
	return ts.Nano()
}

// Stamp is t, a time of this process's monotonic clock, on the machine's. A
// process that is stopped between the two looks at the clock gets a time that
// is too early: it never claims a validity that it does not have. The other way
// round it would.
func Stamp(t time.Time) int64 {
	n := Now()
	return n + int64(time.Until(t))
}

// Seconds writes a time of Now.
func Seconds(t int64) string { return fmt.Sprintf("%.6f", float64(t)/1e9) }

// Wait waits for d, or less if ctx ends.
func Wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// hash makes a number of some words: one seed serves many sources of chance,
// each with its own name.
func hash(words ...string) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// Chance is the source of chance of the given name.
func Chance(seed uint64, words ...string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hash(words...)))
}
