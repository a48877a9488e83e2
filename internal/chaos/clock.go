package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// now is the machine's monotonic clock in nanoseconds, the same in all its
// processes.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every system that this builds on has it
	}
	return ts.Nano()
}

// stamp is t, a time of this process's monotonic clock, on the machine's. A
// process that is stopped between the two looks at the clock gets a time that
// is too early: it never claims a validity that it does not have. The other way
// round it would.
func stamp(t time.Time) int64 {
	n := now()
	return n + int64(time.Until(t))
}

// seconds writes a time of now.
func seconds(t int64) string { return fmt.Sprintf("%.6f", float64(t)/1e9) }

// wait waits for d, or less if ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
