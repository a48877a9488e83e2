package protocol

import (
	"math"
	"time"
)

// This file owns how far tickets may be from clocks.

// Window is the guard time in milliseconds; 0 leaves tickets unbounded, as the
// exhaustive search does, which has no clocks.
type Window uint32

// WindowOf returns the window of a guard time.
func WindowOf(guard time.Duration) Window {
	return Window(min(guard.Milliseconds(), math.MaxUint32))
}

// Half is half of the guard time in microseconds, as tickets count.
func (w Window) Half() int64 { return int64(w) * 500 }

// Old reports whether a node whose clock shows micros may have forgotten a
// ticket above t: one that it took a guard time ago.
func (w Window) Old(t Ticket, micros int64) bool {
	return w != 0 && int64(t) <= micros-w.Half()
}

// Far reports whether a ticket is farther from a clock, which shows clock in
// microseconds, than any node lets it be.
func (w Window) Far(t, clock Ticket) bool {
	return w != 0 && max(t, clock)-min(t, clock) > Ticket(w.Half())
}

// LongestWait bounds every hint when to ask again.
const LongestWait = 1000 * time.Hour
