//go:build !linux

package wake

import "time"

// slept: the system does not say, or not in a way that this library knows.
// Deadlines then go by the monotonic clock alone. Where that stops while the
// machine sleeps, a holder may take its lease for valid after the wake-up,
// while the next one is in.
func slept() (d time.Duration, ok bool) { return 0, false }

// Waker tells when the machine wakes up; here it never does.
type Waker struct{}

func NewWaker() Waker { return Waker{} }

func (Waker) Wait() bool { return false }
func (Waker) Close()     {}
