package process

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a process makes of its nodes' clocks: the bounds of each,
// which of them have parted from its own, and the time that they show together.

// times are the clocks of all nodes. A lock guards the bounds of each, and
// Client.mu the rest.
type times struct {
	ClientConfig

	bounds []nodeBounds
	clocks *nodeset.Clocks // used with all bounds locked, too
	parted atomic.Bool     // some clocks have: each reading may be evidence. Written with mu held
	ahead  atomic.Int64    // see Clock. Written with mu held
}

// ClientConfig is what a Client is made with.
type ClientConfig struct {
	Nodes       int // of the list. Regroup may add some, with Client.mu held
	TTL         time.Duration
	NodeTimeout time.Duration
	Guard       time.Duration
	Seed        uint64                                // spreads the repairs of many clients
	Skewed      func(protocol.Ticket) protocol.Ticket // for tests: what Clock returns instead; nil: it is right
	Rules       protocol.Rules
}

// nodeBounds is what is known of one node's clock; mu guards it.
type nodeBounds struct {
	mu sync.Mutex
	nodeset.ClockBounds
}

func (t *times) boundsOf(from, to int) (bounds []*nodeset.ClockBounds) {
	for i := from; i < to; i++ {
		bounds = append(bounds, &t.bounds[i].ClockBounds)
	}
	return bounds
}

// Bounds returns since when the bounds of a node's clock are known, 0 if they
// are not, and how far apart they are.
func (t *times) Bounds(now protocol.Time, node int) (at protocol.Time, width time.Duration) {
	b := &t.bounds[node]
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.At(), b.Width(now)
}

// Clock returns what the nodes' clocks show, in microseconds: see
// [nodeset.Clocks.Median]. Before any is known it is near 0. The wall clock of
// this process is in nothing.
func (t *times) Clock(now protocol.Time) protocol.Ticket {
	shown := protocol.Ticket(max(0, int64(now)+t.ahead.Load()) / 1000)
	if t.Skewed != nil {
		shown = t.Skewed(shown)
	}
	return shown
}

// judgeClocks gives the judge of the clocks an event. Called with Client.mu
// held.
func (t *times) judgeClocks(event func(j *nodeset.Clocks)) {
	for i := range t.Nodes {
		t.bounds[i].mu.Lock()
	}
	event(t.clocks)
	for i := range t.Nodes {
		t.bounds[i].mu.Unlock()
	}
}

// read gives the judge of the clocks a reading. Called with Client.mu held.
func (t *times) read(node int, r nodeset.Reading) (why protocol.Why) {
	why = protocol.Parted
	t.judgeClocks(func(j *nodeset.Clocks) {
		if j.Read(node, r) {
			why = protocol.Counts
		}
	})
	return why
}

// within takes a reading into the bounds of the node's clock, and reports
// whether it is within them. It takes the lock of these bounds only.
// Invariant: a reading counts without Client.mu only while no clock is known to
// have parted. The first one of a clock takes Client.mu, and so makes it known.
func (t *times) within(node int, r nodeset.Reading) bool {
	if t.parted.Load() {
		return false
	}
	b := &t.bounds[node]
	b.mu.Lock()
	ok := b.At() != 0 && b.Take(r)
	b.mu.Unlock()
	return ok
}
