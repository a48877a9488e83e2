package core

// This file owns the watches of a Quorum: pushes find theirs here.

import (
	"sync"

	"github.com/quorate/quorate/internal/protocol"
)

// watches are the watches that have not ended, by id. It is safe for concurrent
// use; mu guards all and closed. Lock order: mu, then the lock of a flow or a
// link. No lock of a Watch is taken under mu: signal only sends to a channel
// that has room or is full.
// Invariant: each watch is ended at the nodes once, by its goroutine or by
// close.
type watches struct {
	mu     sync.Mutex
	all    map[protocol.ID]*Watch
	closed bool
}

func (s *watches) add(w *Watch) {
	s.mu.Lock()
	s.all[w.terms.ID] = w
	s.mu.Unlock()
}

// drop reports whether the watch is still to be ended at the nodes.
func (s *watches) drop(w *Watch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, w.terms.ID)
	return !s.closed
}

// find returns the watch with an id, nil if it has ended. Nodes may push for
// such a one for two ttl, if the word that it has ended was lost.
func (s *watches) find(id protocol.ID) *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// signal has all watches read soon: pushes may be lost with a connection.
func (s *watches) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.all {
		w.signal(w.soon)
	}
}

// close ends all watches at the nodes. It does not wait for these.
func (s *watches) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, w := range s.all {
		w.forget()
	}
}
