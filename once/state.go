package once

import "time"

// State is the progress of the work.
type State string

// The states of the work.
const (
	// NotStarted ("not started"): no process is running the work, or it ran and
	// failed.
	NotStarted State = "not started"
	// Running ("running"): a process has the claim.
	Running State = "running"
	// Done ("done"): the work is recorded on a majority of the nodes.
	Done State = "done"
)

// String returns the string listed with the state.
func (s State) String() string { return string(s) }

// Status is what the nodes know about the work.
type Status struct {
	State State
	Host  string // host of the process that did the work or is running it
	PID   int    // ID of that process
	Token uint64 // the fencing token of that run
	// When is the time when the work was done. While the work is running, it is
	// the time when the process claimed the name, which may be before the work
	// started if the process first waited for another run that failed. Times are
	// by that process's clock.
	When    time.Time
	Until   time.Time // Done: when the nodes forget it; zero: never
	Waiters int       // Running: number of claims queued behind it
}
