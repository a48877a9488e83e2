package core

// This file owns the attempts by id: pushes and the events of a node find them
// here.

import (
	"sync"

	"github.com/quorate/quorate/internal/protocol"
)

// attempts are the attempts of a Quorum that are under way or held, by id. It
// is safe for concurrent use: each shard has a lock of its own. There are 16,
// or the readers of all nodes and all callers would meet at one lock.
type attempts struct{ shards [16]shard }

// shard is a part of the attempts. mu guards it, and is held for one access to
// the map only. Lock order: attempt.mu, then shard.mu.
type shard struct {
	mu       sync.Mutex
	attempts map[protocol.ID]*attempt
}

func (s *attempts) init() {
	for i := range s.shards {
		s.shards[i].attempts = map[protocol.ID]*attempt{}
	}
}

// Byte 2 of an id is random, so shards are even.
func (s *attempts) shard(id protocol.ID) *shard { return &s.shards[id[2]%byte(len(s.shards))] }

// add lets pushes find the attempt. Called with a.mu held. Invariant: an
// attempt is registered before its first request is queued. A node may push the
// vote before that goroutine goes on.
func (s *attempts) add(id protocol.ID, a *attempt) {
	p := s.shard(id)
	p.mu.Lock()
	p.attempts[id] = a
	p.mu.Unlock()
}

// drop ends that. Called with a.mu held.
func (s *attempts) drop(a *attempt) {
	p := s.shard(a.claim.ID)
	p.mu.Lock()
	delete(p.attempts, a.claim.ID)
	p.mu.Unlock()
}

// find returns nil for an attempt that has ended. The caller holds no lock.
func (s *attempts) find(id protocol.ID) *attempt {
	p := s.shard(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts[id]
}

// all returns a copy, so the caller locks attempts with no shard locked. An
// attempt that begins meanwhile may be missing: it asks the nodes by itself,
// and when the Quorum closes, its Pending.Wait cancels it.
func (s *attempts) all() []*attempt {
	var as []*attempt
	for i := range s.shards {
		p := &s.shards[i]
		p.mu.Lock()
		for _, a := range p.attempts {
			as = append(as, a)
		}
		p.mu.Unlock()
	}
	return as
}
