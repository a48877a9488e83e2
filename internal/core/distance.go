package core

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// distance is how far away a node is: the shortest time in which it has answered
// of late. A node that hangs or has much to do is no further away for that. One
// goroutine at a time takes samples, the reader of the node's answers. The others
// may look.
type distance struct {
	best  atomic.Int64 // nanoseconds; 0: not known
	next  atomic.Int64 // the shortest since
	since atomic.Int64 // when next began
}

// distanceWindow is after how long an answer says nothing about the way any more: the
// route to a node may change while the connection lasts.
const distanceWindow = 10 * time.Second

// begin takes the first round trip of a connection.
func (d *distance) begin(now protocol.Time, trip time.Duration) {
	d.best.Store(int64(trip))
	d.next.Store(math.MaxInt64)
	d.since.Store(int64(now))
}

// took takes the time of one answer.
func (d *distance) took(now protocol.Time, trip time.Duration) {
	if int64(trip) < d.next.Load() {
		d.next.Store(int64(trip))
		if int64(trip) < d.best.Load() {
			d.best.Store(int64(trip))
		}
	}
	if now.Sub(protocol.Time(d.since.Load())) > distanceWindow && on(RuleRoute) {
		d.best.Store(d.next.Load())
		d.next.Store(math.MaxInt64)
		d.since.Store(int64(now))
	}
}

// allow returns how long to wait for an answer from a node whose round trip is that
// long: at least the node timeout, and at most a quarter of the ttl, so that a renewal
// can be tried again. Without it a node further away than the node timeout counts as
// silent always, and no TryLock of a free name succeeds there.
func (s *Settings) allow(trip time.Duration) time.Duration {
	return max(s.NodeTimeout, min(2*trip, s.TTL/4))
}

// patience is how long to wait for a node that is needed: the nearest nodes that
// are well make a quorum, and the furthest of them decides. No call waits for a
// node that is further away than these.
func (q *Quorum) patience(s *Settings, unwell uint32) time.Duration {
	far := false
	for _, n := range q.nodes {
		far = far || time.Duration(n.distance.best.Load()) > s.NodeTimeout/2
	}
	if !far {
		return s.NodeTimeout
	}
	return s.allow(q.trip(unwell))
}

// trip is how long a round trip to the nearest majority of the nodes that are well
// takes, 0 if none is.
func (q *Quorum) trip(unwell uint32) time.Duration {
	var trips []int64
	for i, n := range q.nodes {
		if unwell&(1<<i) == 0 {
			trips = append(trips, n.distance.best.Load())
		}
	}
	if len(trips) == 0 {
		return 0
	}
	slices.Sort(trips)
	if !on(RuleNearest) {
		return time.Duration(trips[len(trips)-1])
	}
	return time.Duration(trips[min(len(q.nodes)/2, len(trips)-1)])
}

// Rounds is how long to wait for so many questions of a majority, one after the other.
func (q *Quorum) Rounds(s *Settings, n int) time.Duration { return time.Duration(n) * q.patience(s, 0) }

// timeout is how long to wait for an answer of this node.
func (n *node) timeout(s *Settings) time.Duration {
	return s.allow(time.Duration(n.distance.best.Load()))
}

// furthest is how long to wait for the answers of all nodes.
func (q *Quorum) furthest(s *Settings) time.Duration {
	longest := s.NodeTimeout
	for _, n := range q.nodes {
		longest = max(longest, n.timeout(s))
	}
	return longest
}
