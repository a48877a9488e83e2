package core

import "github.com/redis/go-redis/v9"

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

// Waiting returns how many requests wait for room at a node.
func (q *Quorum) Waiting(i int) int {
	f := &q.nodes.at(i).flow
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.backlog.Len()
}
