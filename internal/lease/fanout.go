package lease

import (
	"github.com/quorate/quorate/internal/protocol"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// Fanout measures how long each node takes to answer one client, and decides
// which nodes an attempt asks first and how long it waits for an answer. Safety
// depends on neither: to a claim, a deferred node is like a node that is far
// away. Fanout is safe for concurrent use, but at most one goroutine at a time
// may report the answers of a node.
//
// Most locks are free, and are given back at once. If the nodes are busy, an
// attempt at such a name asks q nodes first. It asks the deferred nodes if the
// first ones do not suffice, or after a while. All clients begin with the same
// nodes at a name, so the second client meets the first one there.
type Fanout struct {
	nodes []nodeTimes
	known atomic.Int32 // how many of nodes are in use
}

// nodeTimes is how long one node takes to answer. It fills a cache line,
// because different processors report the answers of different nodes.
type nodeTimes struct {
	ewma       atomic.Int64 // a moving average, in nanoseconds
	best       atomic.Int64 // the shortest recent time, in nanoseconds; 0: not measured
	next       atomic.Int64 // the shortest time since then, in nanoseconds
	since      atomic.Int64 // when next was started
	recovering atomic.Bool  // the node is within its guard time
	_          [24]byte
}

// Grow sets how many nodes are in use.
func (f *Fanout) Grow(nodes int) { f.known.Store(int32(nodes)) }

func (f *Fanout) all() []nodeTimes { return f.nodes[:f.known.Load()] }

func NewFanout(nodes int) *Fanout {
	f := &Fanout{nodes: make([]nodeTimes, protocol.MaxNodes)}
	f.Grow(nodes)
	return f
}

const (
	// The deferred nodes are asked after three times the usual answer time plus
	// deferDelay. If a lock is released before that, they never learn of it.
	deferDelay = 500 * time.Microsecond
	// slowMargin is how much longer than others a node may take and still be
	// one of the first.
	slowMargin = 250 * time.Microsecond
	// One attempt in probeEvery asks all nodes at once, to measure how long
	// each node takes.
	probeEvery = 32
	// routeWindow is how long an answer counts as a measurement of the route to
	// a node. The route may change while the connection lasts.
	routeWindow = 10 * time.Second
)

// Begin records the first round trip of a connection.
func (f *Fanout) Begin(now protocol.Time, node int, trip time.Duration) {
	n := &f.nodes[node]
	n.best.Store(int64(trip))
	n.next.Store(math.MaxInt64)
	n.since.Store(int64(now))
}

// Answered records how long a node took to answer a request. In the average it
// counts as timeout at most.
func (f *Fanout) Answered(now protocol.Time, node int, took, timeout time.Duration) {
	n := &f.nodes[node]
	if old, d := n.ewma.Load(), int64(min(took, timeout)); old == 0 {
		n.ewma.Store(d)
	} else {
		n.ewma.Store(old + (d-old)/8)
	}
	// A busy or hanging node is not farther away, so only the shortest time
	// counts.
	if int64(took) < n.next.Load() {
		n.next.Store(int64(took))
		if int64(took) < n.best.Load() {
			n.best.Store(int64(took))
		}
	}
	if now.Sub(protocol.Time(n.since.Load())) > routeWindow { //mutant:RuleRoute
		n.best.Store(n.next.Load())
		n.next.Store(math.MaxInt64)
		n.since.Store(int64(now))
	}
}

// UpdateRecovering records whether a node is within its guard time, as an
// answer or the start of a connection shows. It reports whether the node is
// within it, or was until now.
func (f *Fanout) UpdateRecovering(node int, recovers bool) (guarding bool) {
	n := &f.nodes[node].recovering
	if guarding = recovers || n.Load(); guarding {
		n.Store(recovers)
	}
	return guarding
}

// Links is the state of the connections of a client when an attempt begins.
type Links struct {
	Unhealthy uint32 // nodes from which no answer can be expected soon, a bit for each
	Busy      int    // how many nodes have a lot to do for this client
}

// Add adds the state of the connection to a node. An answer can be expected
// soon if the node is connected and no request has waited for its answer longer
// than the node is given.
func (l *Links) Add(node int, up bool, waiting, given time.Duration, busy bool) {
	if !up || waiting >= given {
		l.Unhealthy |= 1 << node
	}
	if busy {
		l.Busy++
	}
}

// Deferral says which nodes an attempt asks later, a bit for each, and when.
type Deferral struct {
	Nodes uint32
	After time.Duration
}

// Defer returns the nodes that an attempt asks later, and how long after the
// first ones. It defers none in these cases: other claims have recently been met
// at the name (contended); the hold is not given back at once; the hold is not
// renewed, so a deferred node would give no lease; nodes are being exchanged; the
// attempt decides which configuration follows, which few nodes decide and
// rarely; a quorum is all nodes; the attempt is one of those that measure
// (probeEvery); or less than a quorum of nodes is busy, since one slow node must
// not cause the others to be deferred. Unhealthy and recovering nodes are asked
// at once, but do not count among the first.
func (f *Fanout) Defer(c *Config, name string, contended bool, l Links) (d Deferral) {
	n, members := len(f.all()), c.Sets.All()
	need := protocol.NeedOf(members)
	if c.Sets.Exchanging() || members|c.Absent != 1<<n-1 { // nodes are being exchanged
		return d
	}
	if l.Busy < need || c.Succession || !c.ShortHold || contended || c.NoRenewal ||
		need == bits.OnesCount32(members) || c.ID[3]%probeEvery == 0 {
		return d
	}
	var buf, sorted [32]int64
	for i := range f.all() {
		buf[i] = f.nodes[i].ewma.Load()
	}
	known := sorted[:0]
	for i := range n {
		if members&(1<<i) != 0 {
			known = append(known, buf[i])
		}
	}
	slices.Sort(known)
	usual := time.Duration(known[need-1])
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	first := int(h.Sum32() % uint32(n))
	for k := range n {
		i := (first + k) % n
		switch {
		case members&(1<<i) == 0:
		case l.Unhealthy&(1<<i) != 0 || f.nodes[i].recovering.Load():
		case need > 0 && time.Duration(buf[i]) <= usual+usual/4+slowMargin:
			need--
		default:
			d.Nodes |= 1 << i
		}
	}
	if need > 0 {
		return Deferral{}
	}
	d.After = min(3*usual+deferDelay, c.NodeTimeout/4)
	return d
}

// NodeTimeout returns how long to wait for the answer of a node: at least
// timeout. If the node is far away it is longer, up to a quarter of the ttl, so
// that a renewal can be retried.
func (f *Fanout) NodeTimeout(node int, timeout, ttl time.Duration) time.Duration {
	return allow(time.Duration(f.nodes[node].best.Load()), timeout, ttl)
}

// allow returns the wait for a node with the given round trip: see NodeTimeout.
func allow(trip, timeout, ttl time.Duration) time.Duration {
	return max(timeout, min(2*trip, ttl/4))
}

// QuorumTimeout returns how long to wait for a node that is needed for a
// quorum. The farthest node of the nearest healthy quorum decides. No call
// waits for nodes that are farther away. Usually no node is far away: then the
// result is timeout, without sorting.
func (f *Fanout) QuorumTimeout(
	q protocol.Quorums, unhealthy uint32, timeout, ttl time.Duration,
) time.Duration {
	far := false
	for rest := q.All(); rest != 0; rest &= rest - 1 {
		far = far || time.Duration(f.nodes[bits.TrailingZeros32(rest)].best.Load()) > timeout/2
	}
	if !far {
		return timeout
	}
	return allow(f.QuorumTrip(q, unhealthy), timeout, ttl)
}

// LongestTimeout returns how long to wait for the answers of all these nodes:
// the longest NodeTimeout of any of them.
func (f *Fanout) LongestTimeout(nodes uint32, timeout, ttl time.Duration) time.Duration {
	longest := timeout
	for rest := nodes; rest != 0; rest &= rest - 1 {
		longest = max(longest, f.NodeTimeout(bits.TrailingZeros32(rest), timeout, ttl))
	}
	return longest
}

// QuorumTrip returns the round trip to the q-th nearest healthy node: how long a
// quorum takes. If there are two sets, it takes as long as the slower one. With
// fewer than q healthy nodes the result is the farthest healthy one; with none
// it is 0. A node not measured yet counts as 0.
func (f *Fanout) QuorumTrip(q protocol.Quorums, unhealthy uint32) time.Duration {
	return max(f.tripIn(q.Present, unhealthy), f.tripIn(q.Next, unhealthy))
}

// tripIn is QuorumTrip for one set.
func (f *Fanout) tripIn(set, unhealthy uint32) time.Duration {
	var trips []int64
	for rest := set &^ unhealthy; rest != 0; rest &= rest - 1 {
		trips = append(trips, f.nodes[bits.TrailingZeros32(rest)].best.Load())
	}
	if len(trips) == 0 {
		return 0
	}
	slices.Sort(trips)
	need := protocol.NeedOf(set) //mutant:RuleNearest=len(trips)
	return time.Duration(trips[min(need, len(trips))-1])
}
