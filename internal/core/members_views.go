package core

// This file owns what the rest of this package reads of the set. Each of these
// takes members.mu, or reads one of the copies that members keeps for readers
// without it. None of them changes anything.

import (
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// list returns the addresses of the client's list.
func (s *members) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.List()
}

// home is the Home that requests name now.
func (s *members) home() script.Home { return *s.named.Load() }

// markerKey is the key of the marker that this client's requests go by. Each
// caller takes it for one command. If the set goes on meanwhile, the command
// names the marker of before, which the node has no more: no answer to it
// counts (rule 1).
func (s *members) markerKey() string { return s.home().Marker(s.q.set.Prefix) }

// slots returns which node each member is, -1 where this client has none. All
// are -1 if the set has gone on from c: the places of c's members are not those
// of the next configuration. The exchange then counts them as silent for one
// round.
func (s *members) slots(c *protocol.Configuration) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := make([]int, len(c.Members))
	for k := range slots {
		if slots[k] = -1; s.known.Config() == c {
			slots[k] = s.known.Node(k)
		}
	}
	return slots
}

// recorded returns the address by which the set knows the node that this client
// reaches at addr. An operator names a node as in its own list.
// TestExchangeUnderOtherNames removes one by such a name.
func (s *members) recorded(addr string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range s.q.nodes.all() {
		if n.addr == addr {
			if k := s.known.Member(i); k >= 0 {
				return s.known.Config().Members[k].Addr
			}
		}
	}
	return addr
}

// room reports whether this client has a number for each of these nodes. The
// members that are there have theirs already.
func (s *members) room(added []protocol.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Room(&protocol.Configuration{Members: added}) >= 0
}

// unfit returns why a node has no vote in the set, nil if it has, as far as its
// last connection has shown. The error is made after mu is free: verdictError
// takes mu.
func (s *members) unfit(node int) error {
	s.mu.Lock()
	v := s.known.Verdict(node)
	s.mu.Unlock()
	return s.verdictError(v)
}

// shown returns what a node has shown of its set, nil if it has shown nothing.
// It is a copy, from the last handshake or from a step that this client has
// taken since.
func (n *node) shown() *protocol.NodeSet {
	q := n.q
	s := q.members
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Has(n.index)
}

// reportSet returns what nodes show of their set, and the longest ttl that its
// guard time covers: the inverse of the bound in outOfSet. It is 0 where the
// skew alone is more than half of the guard time, and then no ttl is covered.
func (s *members) reportSet(nodes []NodeReport) (r protocol.SetReport, ttl time.Duration) {
	has := make([]*protocol.NodeSet, len(nodes))
	for i := range nodes {
		has[i] = nodes[i].Set
	}
	if r = protocol.ReportSet(s.config.Load(), has); r.Config != nil {
		ttl = max(0, r.Config.Guard/2-s.q.set.Skew)
	}
	return r, ttl
}
