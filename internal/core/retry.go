package core

// This file owns the pauses between attempts of one operation that were
// superseded.

import (
	"context"
	"math/rand/v2"
	"time"
)

// Retry paces attempts after one whose claim was lost, or superseded by a later
// run, before it was admitted. The next attempt is above what overtook it, so
// one retry is mostly enough.
type Retry struct{ n int }

const (
	// Longer than a round trip in one region: the run that was in the way is
	// mostly over.
	firstRetry = 5 * time.Millisecond
	// The ninth failure in a row reaches it, and is the first that is logged.
	lastRetry = time.Second
)

// Wait waits before the next attempt: twice as long each time, and not as long
// as others. The pauses are random between a half and the whole.
func (r *Retry) Wait(ctx context.Context, q *Quorum, name string, why error) {
	pause := min(firstRetry<<min(r.n, 16), lastRetry)
	if r.n++; pause == lastRetry {
		q.set.Logger.Warn("quorate: a claim was lost again before it was admitted; see Check for clocks that are wrong", "name", name, "times", r.n, "error", why)
	}
	t := time.NewTimer(pause/2 + rand.N(pause/2))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-q.closing:
	}
}
