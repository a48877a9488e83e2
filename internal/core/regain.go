package core

// This file owns how a set comes back that most of its nodes have forgotten: protocol.Membership says when, and
// protocol.Recording how.

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// regain gives the set back to the nodes that lost their data, for as long as that is due.
//
// Each client of the set may do so at the same moment, and each overtakes the others. So it waits for a random time first, and longer after each
// failure. Without that no recording of a thousand clients ends.
func (s *members) regain() {
	select {
	case <-s.q.built:
	case <-s.q.closing:
		return
	}
	// The wait between two attempts, and the attempt itself, end when the Quorum closes.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.q.tasks.start(func() {
		select {
		case <-s.q.closing:
			cancel()
		case <-ctx.Done():
		}
	})
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
		case err != nil && !errors.Is(err, errOutrun) && !warned:
			warned = true
			s.q.set.Logger.Warn("quorate: most nodes of the set lost their data and cannot get their places back yet; it is tried again", "error", err)
		}
	}
}

// regainsStill reports whether regain has something to do. If not, the next event that gives it something starts it again.
func (s *members) regainsStill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.regains = s.known.Regains()
	return s.regains
}

// regainOnce tries it once. What the nodes are is judged again then, whatever has become of it.
func (s *members) regainOnce(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*s.q.set.NodeTimeout)
	defer cancel()
	s.mu.Lock()
	r := s.known.Regain(protocol.NewBallot(s.q.wall.time(), chance(), s.promised))
	s.mu.Unlock()
	if r == nil {
		return false, nil
	}
	// The steps are those of a first recording: promise, accept, commit, at all nodes. What is proposed is the set that was, so
	// another client that regains it at the same moment proposes the same.
	last, err := (&bootstrap{q: s.q}).carryOut(ctx, r)
	s.mu.Lock()
	s.promised = max(s.promised, last)
	s.mu.Unlock()
	s.change(-1, func(m *protocol.Membership) { m.Rejudge() })
	return err == nil, err
}
