package model

import (
	"encoding/binary"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// Name is what a node keeps of one name.
type Name struct {
	node *Node
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

// register is the acceptor of the record that goes with the name, and the
// clients that watch it: see record.go.
type register struct {
	stored     protocol.Stored
	storedEnd  int64 // when that is forgotten, and when the promise is, too
	promiseEnd int64
	promise    protocol.Version     // of the newest run that has begun,
	promiseIn  protocol.Incarnation // and in which incarnation
	watchers   []Watcher            // by when they have read
	changed    int64                // watchers that have not read since get a push; 0: there are none
}

// copied returns a copy that belongs to the node of.
func (n *Name) copied(of *Node) Name {
	c := *n
	c.node, c.claims, c.watchers = of, slices.Clone(n.claims), slices.Clone(n.watchers)
	return c
}

// Resize is what the record that goes with the name says about a semaphore's
// permits.
func (n *Name) Resize(limit uint64, at protocol.Ticket) {
	if at > n.limitAt {
		n.limit, n.limitAt = limit, at
	}
}

// Limit returns the newest Resize that the node knows of.
func (n *Name) Limit() (uint64, protocol.Ticket) { return n.limit, n.limitAt }

// Claims returns the claims that live at now, lowest ticket first.
func (n *Name) Claims(now int64) []Claim {
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
func (n *Name) Size() int { return len(n.claims) }

// Capacity returns the maximum total weight of the claims. It is only
// meaningful while there are claims.
func (n *Name) Capacity() uint64 { return n.capacity }

// Fence returns the highest ticket ever given.
func (n *Name) Fence() protocol.Ticket { return n.fence }

// Empty reports whether no claim and no Redlock key is left at now.
func (n *Name) Empty(now int64) bool {
	return n.Redlock.Value(now) == "" && !n.anyLives(now)
}

// Edges returns the moments at which something ends by the clock alone: leases
// (even of claims that have not been dropped yet), the Redlock key, and the
// guard time. A request that a real server gets within a millisecond or two of
// one of them may be answered either way.
func (n *Name) Edges() []int64 {
	var edges []int64
	if n.node.marked {
		guard := n.node.guardTime
		ends := n.node.born + guard
		edges = append(edges, ends, ends+guard-untilCaughtUp.Milliseconds(), ends+guard)
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

// AppendState appends the state of the node and the name in a canonical form:
// two nodes with the same bytes behave the same from then on, at this name. Times are relative to now, and all
// past times look the same. A dead claim that has not been dropped yet still
// counts, because dropping it pushes the next vote.
func (n *Name) AppendState(b []byte, now int64) []byte {
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

	num(uint64(n.node.Off))
	flag(n.node.marked)
	if n.node.marked {
		num(uint64(n.node.incarnation))
		rest(n.node.born + n.node.guardTime)
	}
	num(uint64(n.fence))
	b = append(b, n.fenceOf[:]...)
	num(uint64(len(n.claims)))
	if len(n.claims) > 0 {
		num(n.capacity)
	}
	if n.node.Portion > 0 {
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
