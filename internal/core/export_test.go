package core

import (
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/protocol"
)

// Drop ends a node. The channel is closed when nothing of it is left.
func (q *Quorum) Drop(i int) <-chan struct{} {
	n := q.Nodes.At(i)
	n.Drop()
	return n.Ended
}

// Connect starts a node with the number of a dropped node.
func (q *Quorum) Connect(i int, c redis.UniversalClient) error {
	return q.Nodes.Connect(q.Peers, i, q.Nodes.At(i).Addr, c, false)
}

// Connected reports whether each member of the set is connected.
func (q *Quorum) Connected() bool {
	live := q.Nodes.Live()
	return len(live) > 0 && len(live) == q.Size() &&
		!slices.ContainsFunc(live, func(n *peers.Node) bool { return n.Unfit() != nil })
}

// Waits reports whether requests wait for room at a node.
func (q *Quorum) Waits(i int) bool { return q.Nodes.At(i).Behind(protocol.Classes - 1) }

// Attempts returns how many attempts are in progress or held.
func (q *Quorum) Attempts() int { return len(q.attempts.list()) }
