package core

// This file owns what is said where too few nodes are connected, in the log and
// to a probe. Nothing else depends on it.

import (
	"context"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"sync"
	"time"
)

// reach logs that there is no quorum of connected nodes, with the cause of each
// node. It is safe for concurrent use; mu guards it. An episode begins when a
// node is down or the Quorum begins, and ends when a quorum is connected.
type reach struct {
	mu    sync.Mutex
	timer *time.Timer   // runs while an episode lasts
	armed bool          // the timer runs
	pause time.Duration // until the next look
	said  string        // what the last line of this episode said
}

// A node that restarts is back within reachPause. The longer an episode lasts,
// the less often a change of it is logged.
const (
	reachPause   = 2 * time.Second
	longestPause = time.Minute
)

func (r *reach) begin(q *Quorum) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.armed || q.isClosed() {
		return
	}
	r.armed, r.pause, r.said = true, reachPause, ""
	if r.timer == nil {
		r.timer = time.AfterFunc(r.pause, q.lookAtReach)
	} else {
		r.timer.Reset(r.pause)
	}
}

// stop ends the timer for good. The Quorum is closing, so begin starts none.
func (r *reach) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}

// lookAtReach logs which nodes are missing, if a quorum is. It runs in a
// goroutine of the timer, so a logger that blocks delays nothing else.
func (q *Quorum) lookAtReach() {
	missing := q.missing()
	if q.reach.note(q.isClosed(), missing) && q.set.maySay(time.Now()) {
		causes := make([]any, 0, len(missing.Nodes))
		for _, n := range missing.Nodes {
			causes = append(causes, slog.String(n.Addr, n.Err.Error()))
		}
		q.set.Logger.LogAttrs(context.Background(), slog.LevelWarn,
			fmt.Sprintf("quorate: %d of %d nodes connected, %d needed; waiting", missing.Votes, missing.Votes+len(missing.Nodes), missing.Needed), slog.Group("missing", causes...))
	}
}

// missing says which nodes are not connected and why, or nil if a quorum is
// connected, or the nodes are brand-new and wait for the first call.
func (q *Quorum) missing() *Failure {
	f, _ := q.reached()
	switch {
	case f == nil || q.members.blank():
		return nil
	case q.members.config.Load() != nil:
		return f
	}
	list := q.seeds.live()
	f = &Failure{Err: ErrNoQuorum, Needed: len(list)/2 + 1}
	for _, n := range list {
		if err := n.err(); err != nil {
			f.Nodes = append(f.Nodes, NodeFailure{Addr: n.addr, Err: namesAge(err)})
		}
	}
	if f.Votes = len(list) - len(f.Nodes); f.Votes >= f.Needed {
		return q.members.unknown()
	}
	return f
}

// Serving returns nil if a quorum is connected and votes, as far as this
// process knows, else what is known of the nodes. It asks no node.
func (q *Quorum) Serving() error {
	if q.isClosed() {
		return &Failure{Err: ErrClosed}
	}
	if q.buckets != nil {
		for _, b := range q.buckets.begun() {
			if err := b.Serving(); err != nil {
				return err
			}
		}
		return nil
	}
	if !q.members.usable() {
		return q.members.unknown()
	}
	sets, voting := q.driver.sets(), uint32(0)
	f := &Failure{Err: ErrNoQuorum, Needed: sets.Need()}
	for i, n := range q.nodes.all() {
		err := n.err()
		if err == nil {
			err = q.members.unfit(i)
		}
		if wait := q.recovering.left(i); err == nil && wait > 0 {
			err = &RecoveringError{Wait: wait}
		}
		if err == nil {
			voting |= 1 << i
		} else if sets.All()&(1<<i) != 0 {
			f.Nodes = append(f.Nodes, NodeFailure{Addr: n.addr, Err: namesAge(err)})
		}
	}
	if f.Votes = bits.OnesCount32(voting & sets.All()); sets.Met(voting) {
		return nil
	}
	return f
}

// note takes which nodes are missing, and reports whether to log that. It sets
// the timer for the next look.
func (r *reach) note(closed bool, missing *Failure) (say bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.armed = !closed && missing != nil; !r.armed {
		return false
	}
	if text := missing.gist(); text != r.said {
		r.said, say = text, true
		defer func() { r.pause = min(2*r.pause, longestPause) }()
	}
	r.timer.Reset(r.pause)
	return say
}

// gist is what a change of is news. The digits are left out: each attempt to
// connect has another local port.
func (f *Failure) gist() string {
	var b strings.Builder
	for _, n := range f.Nodes {
		fmt.Fprintf(&b, "%s %s\n", n.Addr, strings.Map(func(c rune) rune {
			if '0' <= c && c <= '9' {
				return -1
			}
			return c
		}, n.Err.Error()))
	}
	return b.String()
}
