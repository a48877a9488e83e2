package inspect

// Watching one name.

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
)

// Watch looks at the name again this long after a change, and doubles the pause
// up to longestPause while nothing changes.
const (
	shortestPause = 200 * time.Millisecond
	longestPause  = time.Second
)

// Watch yields what [Name] returns, and does so again after each change: a
// claim appears, gets the name, goes away or gives up permits, the number of
// permits changes, or a new record is written. The remaining time of a lease,
// the votes, and the reports of individual nodes change all the time, so they
// do not count as changes.
//
// If too few nodes answer, Watch yields their report once along with
// [quorate.ErrNoQuorum], and continues. It yields the next report when a
// majority answers.
//
// The nodes push changes only to processes that claim the name, which Watch
// does not do. So it polls: it asks all nodes again 200 ms after a change, then
// at increasing intervals of up to 1 s. It misses a hold that begins and ends
// between two polls. If the loop body is slow, it gets the newest state and
// skips the changes in between.
//
// The sequence ends when ctx is done or the Quorum is closed. If the name is
// not allowed, it yields a single error, [quorate.ErrInvalid]. You may range
// over the sequence more than once, even concurrently.
func Watch(ctx context.Context, q *quorate.Quorum, name string) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		if err := setup.CheckName(name); err != nil {
			yield(Report{}, core.WrapError("watch", name, err))
			return
		}
		c := core.CoreOf(q).For(name)
		shown, pause := "", shortestPause
		for ctx.Err() == nil {
			v, err := look(ctx, c.Onlooker(), name, most, everyNode)
			if err != nil || ctx.Err() != nil { // the Quorum is closed, or the answers were cut short
				return
			}
			if now := v.fingerprint(); now != shown {
				shown, pause = now, shortestPause
				if !yield(v.report(name), core.WrapError("watch", name, v.missing())) {
					return
				}
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			case <-c.Over:
				return
			}
			pause = min(2*pause, longestPause)
		}
	}
}

// fingerprint is equal for two views between which nothing has changed that
// Watch yields.
func (v *view) fingerprint() string {
	if v.missing() != nil {
		return "too few nodes answer"
	}
	r := v.report("")
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %d, %d more, foreign %t", r.Kind, r.Capacity, r.More, r.Foreign > 0)
	if w, _ := v.newest(); w != nil {
		fmt.Fprintf(&b, ", recorded %+v", w.Version)
	}
	for _, m := range v.claims() {
		fmt.Fprintf(&b, "; %s holds %t, weight %d", m.ID, v.sets.Met(m.voted), m.Weight)
	}
	return b.String()
}
