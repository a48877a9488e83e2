package core

// This file owns how a set comes back that most of its nodes have forgotten:
// protocol.Membership says when, and protocol.Recording how.

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// regain gives the set back to the nodes that lost their data, for as long as
// that is due (docs/membership.md, rule 7). It is a task, and change starts one
// at a time.
//
// Each client of the set may do so at the same moment, and each supersedes the
// others. So it waits for a random time first, and longer after each failure.
// Without that no recording of a thousand clients ends.
//
// It ends when nothing is to be regained any more, or when a node is away: that
// is due only while all of them are connected. No caller waits for it.
func (s *members) regain() {
	select {
	case <-s.q.built:
	case <-s.q.closing:
		return
	}
	// The wait between two attempts, and the attempt itself, end when the
	// Quorum closes.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.q.tasks.start(func() {
		select {
		case <-s.q.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	ended := false
	defer func() { // a logger may end this goroutine: the next event starts the task again
		if !ended {
			s.mu.Lock()
			s.regains = false
			s.mu.Unlock()
		}
	}()
	warned := false
	for pause := s.q.set.NodeTimeout; s.regainsStill(); pause = min(2*pause, 32*s.q.set.NodeTimeout) {
		select {
		case <-time.After(rand.N(pause)):
		case <-ctx.Done():
			return
		}
		switch done, err := s.regainOnce(ctx); {
		case done:
			s.q.set.Logger.Info("quorate: most nodes of the set lost their data and got their places back; they vote after the guard time")
		// To be superseded by another client is no failure of the set: that one
		// regains it. The warning comes once, as the attempts go on until an
		// operator has acted.
		case err != nil && !errors.Is(err, errRecordingSuperseded) && !warned:
			warned = true
			s.q.set.Logger.Warn("quorate: most nodes of the set lost their data and cannot get their places back yet; it is tried again", "error", err)
		}
	}
	ended = true
}

// regainsStill reports whether regain has something to do. If not, the next
// event that gives it something starts it again.
//
// Invariant: regains is set back under the mu under which change looks at it.
// Otherwise an event between the last look and the end of the task would start
// none, and the set would stay lost.
func (s *members) regainsStill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.regains = s.known.Regains()
	return s.regains
}

// regainOnce tries it once. What the nodes are is judged again then, whatever
// has become of it.
func (s *members) regainOnce(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*s.q.set.NodeTimeout)
	defer cancel()
	s.mu.Lock()
	r := s.known.Regain(protocol.NewBallot(s.q.wall.time(), chance(), s.promised))
	s.mu.Unlock()
	if r == nil {
		return false, nil
	}
	// The steps are those of a first recording: promise, accept, commit, at all
	// nodes. What is proposed is the set that was, so another client that
	// regains it at the same moment proposes the same.
	last, err := (&bootstrap{q: s.q}).carryOut(ctx, r)
	// promised makes the next ballot higher than any that a node has shown. A
	// client whose wall clock is behind would otherwise be refused each time.
	s.mu.Lock()
	s.promised = max(s.promised, last)
	s.mu.Unlock()
	s.change(-1, func(m *protocol.Membership) { m.Rejudge() })
	return err == nil, err
}
