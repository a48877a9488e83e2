package once

import "time"

// State tells how far the work is.
type State string

// The states of the work.
const (
	// NotStarted ("not started"): no process runs the work, or it ran and
	// failed.
	NotStarted State = "not started"
	// Running ("running"): a process has the claim.
	Running State = "running"
	// Done ("done"): the work is recorded on a majority of the nodes.
	Done State = "done"
)

// String returns the state's string, as it stands at each state.
func (s State) String() string { return string(s) }

// Status is what the nodes know about the work.
type Status struct {
	State State
	Host  string // of the process that did it, or runs it
	PID   int    // of that process
	Token uint64 // the fencing token of that run
	// When is when the work was done. While it runs, it is when its process
	// claimed the name: before the work began, if it waited for another run
	// that failed. By that process's clock.
	When    time.Time
	Until   time.Time // Done: how long the nodes remember that; zero: forever
	Waiters int       // Running: claims queued behind it
}
