//go:build !linux

package wake

import "time"

// slept reports that the time of a suspension is unknown: the system does not
// tell it, or not in a way that this library knows. Deadlines then follow the
// monotonic clock alone. If that clock stops while the machine sleeps, a holder
// may treat its lease as valid after the wake-up although another client holds
// the lock by then.
func slept() (d time.Duration, ok bool) { return 0, false }

// Waker reports when the machine wakes up; on this system it never does.
type Waker struct{}

func NewWaker() Waker { return Waker{} }

func (Waker) Wait() bool { return false }
func (Waker) Close()     {}
