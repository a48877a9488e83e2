package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"
)

// This file owns how long the next attempt to connect waits, and how patient it
// is.

const (
	// minBackoff is long enough that a node that refuses connections costs
	// little, and short enough that a restarted node is back before a caller
	// notices.
	minBackoff = 20 * time.Millisecond
	// maxBackoff bounds how long a node that is back stays unused. Many clients
	// try at random times below it, so they do not all come at one moment.
	maxBackoff = time.Second
)

// The times that an attempt to connect may take, in Stalls.
const (
	maxStep    = 16 // one step
	maxConnect = 32 // all of it
)

// backoff is the pause between attempts: 20 ms doubling to 1 s, each drawn from
// its upper half, so that many clients of a node that comes back do not meet.
// After a timeout the next attempt may take twice as long.
type backoff struct {
	next time.Duration
	slow int // attempts that took too long
}

func (b *backoff) stepTimeout(stall time.Duration) time.Duration {
	return min(stall<<b.slow, maxStep*stall)
}

// failed takes why an attempt has failed. Only a timeout makes the next attempt
// more patient. A refused connection fails at once, however long it may take.
func (b *backoff) failed(err error) {
	if slow(err) {
		b.slow = min(b.slow+1, 4)
	}
}

// lasted takes how long a connection was up that has broken. After one that has
// answered a command the pause is no longer than that, so a node whose
// connections are reset again and again is up for half of the time. A
// connection that breaks before any answer shortens no pause: its node may
// refuse every one.
func (b *backoff) lasted(d time.Duration, served bool) {
	if d > maxBackoff {
		*b = backoff{}
	} else if served {
		b.next = min(b.next, d)
	}
}

// sleep waits for the next attempt, and doubles the pause after that. It ends
// early with Close.
func (b *backoff) sleep(ctx context.Context) {
	d := min(max(b.next, minBackoff), maxBackoff)
	b.next = 2 * d
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// slow reports whether err is a timeout: of a step here, of a dial, or of the
// system. Only these let the next attempt take longer: see backoff.
func slow(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}
