package core

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// lease.Fanout knows how far away each node is, and decides how long to wait.

// Rounds is how long to wait for n questions of a majority, one after another.
func (q *Quorum) Rounds(s *Settings, n int) time.Duration {
	return time.Duration(n) * q.driver.client.Fanout().QuorumTimeout(0, s.NodeTimeout, s.TTL)
}

func (d *driver) sets() protocol.Quorums { return d.client.Group().Sets }

// timeout is how long to wait for an answer of this node.
func (n *node) timeout(s *Settings) time.Duration {
	if n.seed() {
		return max(s.NodeTimeout, min(2*n.info().RoundTrip, s.TTL/4))
	}
	return n.fanout.NodeTimeout(n.index, s.NodeTimeout, s.TTL)
}

// furthest is how long to wait for the answers of all nodes.
func (d *driver) furthest(s *Settings) time.Duration {
	return d.client.Fanout().Longest(s.NodeTimeout, s.TTL)
}
