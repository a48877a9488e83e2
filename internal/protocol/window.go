package protocol

import (
	"math"
	"time"
)

// How far tickets may be from clocks.

// Window is the guard time in milliseconds. 0 means that tickets are unbounded,
// as in the exhaustive search, which has no clocks.
type Window uint32

// WindowOf returns the window for a guard time.
func WindowOf(guard time.Duration) Window {
	return Window(min(guard.Milliseconds(), math.MaxUint32))
}

// Half is half of the guard time in microseconds, the unit of tickets.
func (w Window) Half() int64 { return int64(w) * 500 }

// Old reports whether a node whose clock shows micros may have forgotten a
// ticket above t, because it accepted that ticket a guard time ago.
func (w Window) Old(t Ticket, micros int64) bool {
	return w != 0 && int64(t) <= micros-w.Half()
}

// Far reports whether ticket t is farther than any node allows from a clock
// that shows clock, in microseconds.
func (w Window) Far(t, clock Ticket) bool {
	return w != 0 && max(t, clock)-min(t, clock) > Ticket(w.Half())
}

// LongestWait bounds every hint about when to ask again.
const LongestWait = 1000 * time.Hour
