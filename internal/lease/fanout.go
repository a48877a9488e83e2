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

// This file owns which nodes an attempt asks first, and how long to wait for an
// answer. Safety does not rest on either: to a claim, a deferred node is one
// that is far away.

// Fanout knows how long each node takes to answer one client. It is safe for
// concurrent use. At most one goroutine at a time may report the answers of a
// node.
//
// Most locks are free, and given back at once. Where the nodes' time is scarce,
// an attempt at such a name asks q nodes first, and the deferred nodes when
// these do not suffice, or after a while. All clients begin with the same nodes
// at a name, so the second client meets the first one there.
type Fanout struct {
	nodes []nodeTimes
	known atomic.Int32 // how many of them there are
}

// nodeTimes is how long one node takes to answer. It fills a cache line,
// because another processor reports each node's answers.
type nodeTimes struct {
	ewma       atomic.Int64 // a moving average, in nanoseconds
	best       atomic.Int64 // the shortest of late, in nanoseconds; 0: not known
	next       atomic.Int64 // the shortest since
	since      atomic.Int64 // when next began
	recovering atomic.Bool  // the node is within its guard time
	_          [24]byte
}

func (f *Fanout) Grow(nodes int) { f.known.Store(int32(nodes)) }

func (f *Fanout) all() []nodeTimes { return f.nodes[:f.known.Load()] }

func NewFanout(nodes int) *Fanout {
	f := &Fanout{nodes: make([]nodeTimes, protocol.MaxNodes)}
	f.Grow(nodes)
	return f
}

const (
	// deferDelay is what the first nodes are given beyond what such nodes have
	// taken of late, before the deferred nodes are asked. A lock that is kept
	// for less is never anywhere else.
	deferDelay = 500 * time.Microsecond
	// slowMargin is by how much longer a node may take than others and still be
	// one of the first.
	slowMargin = 250 * time.Microsecond
	// probeEvery is how often all nodes are asked at once in any case, so that
	// it is known how long each one takes: one attempt in so many.
	probeEvery = 32
	// routeWindow is after how long an answer says nothing about the route any
	// more: the route to a node may change while the connection lasts.
	routeWindow = 10 * time.Second
)

// Begin takes the first round trip of a connection.
func (f *Fanout) Begin(now protocol.Time, node int, trip time.Duration) {
	n := &f.nodes[node]
	n.best.Store(int64(trip))
	n.next.Store(math.MaxInt64)
	n.since.Store(int64(now))
}

// Answered takes how long a node took to answer a request. No longer time than
// timeout counts in the average.
func (f *Fanout) Answered(now protocol.Time, node int, took, timeout time.Duration) {
	n := &f.nodes[node]
	if old, d := n.ewma.Load(), int64(min(took, timeout)); old == 0 {
		n.ewma.Store(d)
	} else {
		n.ewma.Store(old + (d-old)/8)
	}
	// A node that hangs or has much to do is no further away for that.
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

// Recovers says whether a node is within its guard time.
func (f *Fanout) Recovers(node int, recovers bool) { f.nodes[node].recovering.Store(recovers) }

func (f *Fanout) Recovering(node int) bool { return f.nodes[node].recovering.Load() }

// Links is how a client's connections stand as an attempt begins.
type Links struct {
	Unhealthy uint32 // nodes of which no answer can be expected soon, a bit for each
	Busy      int    // nodes that have much to do for this client
}

// See notes how the connection to a node stands. An answer can be expected soon
// if the node is connected and no request has waited for its answer for longer
// than the node is given.
func (l *Links) See(node int, up bool, waiting, given time.Duration, busy bool) {
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

// Defer returns which nodes an attempt defers, and for how long. It defers none
// if other claims were met at the name of late (contended), if its hold is not
// given back at once or not renewed (a deferred node would get no lease), while
// nodes are exchanged, or unless a quorum of nodes is busy: a single slow node
// must not have the others deferred. Nodes that are unhealthy are asked at
// once, and not waited for: they may be well again.
func (f *Fanout) Defer(c *Config, name string, contended bool, l Links) (d Deferral) {
	n, members := len(f.all()), c.Sets.All()
	need := protocol.NeedOf(members)
	if c.Sets.Next != 0 || members|c.Absent != 1<<n-1 { // nodes are being exchanged
		return d
	}
	if l.Busy < need || !c.ShortHold || contended || c.NoRenewal || need == bits.OnesCount32(members) || c.ID[3]%probeEvery == 0 {
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
		case l.Unhealthy&(1<<i) != 0 || f.Recovering(i):
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

// NodeTimeout returns how long to wait for an answer of a node: at least
// timeout, and at most a quarter of the ttl, so that a renewal can be tried
// again.
func (f *Fanout) NodeTimeout(node int, timeout, ttl time.Duration) time.Duration {
	return allow(time.Duration(f.nodes[node].best.Load()), timeout, ttl)
}

func allow(trip, timeout, ttl time.Duration) time.Duration {
	return max(timeout, min(2*trip, ttl/4))
}

// QuorumTimeout returns how long to wait for a node that is needed: the nearest
// nodes that are well make a quorum, and the furthest of them decides. No call
// waits for a node that is further away than these.
func (f *Fanout) QuorumTimeout(unhealthy uint32, timeout, ttl time.Duration) time.Duration {
	far := false
	for i := range f.all() {
		far = far || time.Duration(f.nodes[i].best.Load()) > timeout/2
	}
	if !far {
		return timeout
	}
	return allow(f.Trip(unhealthy), timeout, ttl)
}

// Longest returns how long to wait for the answers of all nodes.
func (f *Fanout) Longest(timeout, ttl time.Duration) time.Duration {
	longest := timeout
	for i := range f.all() {
		longest = max(longest, f.NodeTimeout(i, timeout, ttl))
	}
	return longest
}

// Trip returns how long a round trip to the nearest majority of the nodes that
// are well takes, 0 if none is.
func (f *Fanout) Trip(unhealthy uint32) time.Duration {
	var trips []int64
	for i := range f.all() {
		if unhealthy&(1<<i) == 0 {
			trips = append(trips, f.nodes[i].best.Load())
		}
	}
	if len(trips) == 0 {
		return 0
	}
	slices.Sort(trips)
	quorum := len(f.all()) / 2 //mutant:RuleNearest=len(trips)
	return time.Duration(trips[min(quorum, len(trips)-1)])
}
