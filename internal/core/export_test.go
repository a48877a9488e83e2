package core

import (
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/protocol"
)

// Drop ends a node. The channel is closed when nothing of it is left.
func (q *Quorum) Drop(i int) <-chan struct{} {
	n := q.nodes.at(i)
	n.drop()
	return n.ended
}

// Connect begins a node with the number of one that was dropped.
func (q *Quorum) Connect(i int, c redis.UniversalClient) error {
	return q.nodes.connect(q, i, q.nodes.at(i).addr, c, false)
}

// Connected reports whether each member of the set is connected.
func (q *Quorum) Connected() bool {
	live := q.nodes.live()
	return len(live) > 0 && len(live) == q.Size() && !slices.ContainsFunc(live, func(n *node) bool { return n.unfit() != nil })
}

// Waits reports whether requests wait for room at a node.
func (q *Quorum) Waits(i int) bool { return q.nodes.at(i).Behind(protocol.Classes - 1) }

// Crowd returns how many callers wait for a place.
func (q *Quorum) Crowd() int {
	q.intake.mu.Lock()
	defer q.intake.mu.Unlock()
	return q.intake.in.Waiting()
}

// Attempts returns how many attempts are under way or held.
func (q *Quorum) Attempts() int { return len(q.attempts.all()) }
