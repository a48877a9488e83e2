// Package model is the reference node: what one Redis node does for its names,
// in the simplest code that is correct. The simulator uses it, and
// internal/script/conformance checks that the Lua scripts behave in the same
// way.
//
// It has no clock: every call passes the time in milliseconds of the node's own
// clock. It limits its work in the same way as the scripts, because how much a
// request does is visible in the answers. A Node is not safe for concurrent
// use: like a Redis server, it handles one request after the other.
package model

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Node is one node's data of one name, and what the node keeps once for all
// names. Name returns the same node's data of another name.
type Node struct {
	*shared
	queue
	Redlock RedlockKey
	register

	fence    protocol.Ticket
	fenceOf  protocol.ID     // the claim that was given the fence
	fenceEnd int64           // when the fence is forgotten, unless a claim is there
	capacity uint64          // means something only while there are claims
	limit    uint64          // of a semaphore: the capacity since a Resize; 0: none
	limitAt  protocol.Ticket // of that Resize
}

// Watcher is a client's watch of the record: the client wants to hear of
// changes.
type Watcher struct {
	ID     protocol.ID
	Owner  string
	Seen   int64 // when it has read the record
	Expiry int64
}

// register is that acceptor, and the clients that watch it.
type register struct {
	stored     protocol.Stored
	storedEnd  int64 // when that is forgotten, and when the promise is, too
	promiseEnd int64
	promise    protocol.Version     // of the newest run that has begun,
	promiseIn  protocol.Incarnation // and in which incarnation
	watchers   []Watcher            // by when they have read
	changed    int64                // watchers that have not read since get a push; 0: there are none
}

// New returns a brand-new node. It has no marker, so it refuses every request.
func New(guard time.Duration) *Node {
	n := &Node{shared: &shared{}}
	n.first = n
	n.Configure(guard, time.Duration(forGood/int64(time.Millisecond)))
	return n
}

// Name returns the node's data of a name. The empty name is the one that New
// has returned.
func (n *Node) Name(name string) *Node {
	if name == "" {
		return n.first
	}
	m := n.names[name]
	if m == nil {
		if n.names == nil {
			n.names = map[string]*Node{}
		}
		m = &Node{shared: n.shared}
		n.names[name] = m
	}
	return m
}

// Names returns the names that were asked for, except the empty one, in no
// particular order.
func (n *Node) Names() iter.Seq[string] { return maps.Keys(n.names) }

// Clone returns an independent copy, with all names.
func (n *Node) Clone() *Node {
	s := *n.shared
	same := s.first == n
	s.first = s.first.copied(&s)
	of := s.first
	s.names = nil
	if len(n.names) > 0 {
		s.names = make(map[string]*Node, len(n.names))
	}
	for name, m := range n.names {
		c := m.copied(&s)
		if s.names[name] = c; !same && m == n {
			of = c
		}
	}
	return of
}

// copied returns a copy of the data of one name, which belongs to the node s.
func (n *Node) copied(s *shared) *Node {
	c := *n
	c.shared, c.claims, c.watchers = s, slices.Clone(n.claims), slices.Clone(n.watchers)
	return &c
}

// Resize is what the record that goes with the name says about a semaphore's
// permits.
func (n *Node) Resize(limit uint64, at protocol.Ticket) {
	if at > n.limitAt {
		n.limit, n.limitAt = limit, at
	}
}

// Limit returns the newest Resize that the node knows of.
func (n *Node) Limit() (uint64, protocol.Ticket) { return n.limit, n.limitAt }

// Forget is a restart without data: the data of all names is lost.
func (n *Node) Forget() {
	s := n.shared
	*s = shared{Off: s.Off, Portion: s.Portion, Bucketed: s.Bucketed, guardTime: s.guardTime,
		retention: s.retention, counts: s.counts, first: s.first, names: s.names}
	*s.first = Node{shared: s}
	for _, m := range s.names {
		*m = Node{shared: s}
	}
}

// Claims returns the claims that live at now, lowest ticket first.
func (n *Node) Claims(now int64) []Claim {
	live := make([]Claim, 0, len(n.claims))
	for _, c := range n.claims {
		if c.Expiry > now {
			live = append(live, c)
		}
	}
	return live
}

// Size returns the number of claims that the node stores, including those whose
// lease has ended but that it has not dropped yet.
func (n *Node) Size() int { return len(n.claims) }

// Capacity returns the maximum total weight of the claims. It is only
// meaningful while there are claims.
func (n *Node) Capacity() uint64 { return n.capacity }

// Fence returns the highest ticket ever given.
func (n *Node) Fence() protocol.Ticket { return n.fence }

// Empty reports whether no claim and no Redlock key is left at now.
func (n *Node) Empty(now int64) bool {
	return n.Redlock.Value(now) == "" && !n.anyLives(now)
}

// Edges returns the moments at which something ends by the clock alone: leases
// (even of claims that have not been dropped yet), the Redlock key, and the
// guard time. A request that a real server gets within a millisecond or two of
// one of them may be answered either way.
func (n *Node) Edges() []int64 {
	var edges []int64
	if n.marked {
		ends := n.born + n.guardTime
		edges = append(edges, ends, ends+n.guardTime-untilCaughtUp.Milliseconds(), ends+n.guardTime)
	}
	if n.Redlock.plain != "" {
		edges = append(edges, n.Redlock.plainEnd)
	}
	edges = append(edges, n.firstExpiry)
	for _, c := range n.claims {
		edges = append(edges, c.Expiry)
	}
	for _, w := range n.watchers {
		edges = append(edges, w.Expiry)
	}
	if n.promise != (protocol.Version{}) {
		edges = append(edges, n.storedEnd, n.promiseEnd)
	}
	return edges
}

// AppendState appends the node's state in a canonical form: two nodes with the
// same bytes behave the same from then on. Times are relative to now, and all
// past times look the same. A dead claim that has not been dropped yet still
// counts, because dropping it pushes the next vote.
func (n *Node) AppendState(b []byte, now int64) []byte {
	num := func(v uint64) { b = binary.AppendUvarint(b, v) }
	rest := func(end int64) { num(uint64(max(0, end-now))) }
	flag := func(vs ...bool) {
		var f byte
		for i, v := range vs {
			if v {
				f |= 1 << i
			}
		}
		b = append(b, f)
	}
	text := func(s string) { num(uint64(len(s))); b = append(b, s...) }

	num(uint64(n.Off))
	flag(n.marked)
	if n.marked {
		num(uint64(n.incarnation))
		rest(n.born + n.guardTime)
	}
	num(uint64(n.fence))
	b = append(b, n.fenceOf[:]...)
	num(uint64(len(n.claims)))
	if len(n.claims) > 0 {
		num(n.capacity)
	}
	if n.Portion > 0 {
		rest(n.firstExpiry)
		rest(n.lastExpiry)
		num(uint64(n.droppedUpTo))
		num(uint64(n.notifiedUpTo))
	}
	num(n.limit)
	num(uint64(n.limitAt))
	for i := range n.claims {
		c := &n.claims[i]
		b = append(b, c.ID[:]...)
		num(uint64(c.Ticket))
		num(c.Weight)
		rest(c.Expiry)
		text(c.Owner)
		flag(c.Notify, c.Voted)
	}
	p := n.Redlock.Value(now)
	text(p)
	if p != "" {
		rest(n.Redlock.plainEnd)
	}
	return b
}
