package process

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a process makes of its nodes' clocks: the bounds of each,
// which of them have parted from its own, and the time that they show together.

// nodeBounds is what is known of one node's clock; mu guards it.
type nodeBounds struct {
	mu sync.Mutex
	nodeset.ClockBounds
}

func (c *Client) boundsOf(from, to int) (bounds []*nodeset.ClockBounds) {
	for i := from; i < to; i++ {
		bounds = append(bounds, &c.bounds[i].ClockBounds)
	}
	return bounds
}

// Bounds returns since when the bounds of a node's clock are known, 0 if they
// are not, and how far apart they are.
func (c *Client) Bounds(now protocol.Time, node int) (at protocol.Time, width time.Duration) {
	b := &c.bounds[node]
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.At(), b.Width(now)
}

// Clock returns what the nodes' clocks show, in microseconds: see
// [nodeset.Clocks.Median]. Before any is known it is near 0. The wall clock of
// this process is in nothing.
func (c *Client) Clock(now protocol.Time) protocol.Ticket {
	shown := protocol.Ticket(max(0, int64(now)+c.ahead.Load()) / 1000)
	if c.Skewed != nil {
		shown = c.Skewed(shown)
	}
	return shown
}

// judgeClocks gives the judge of the clocks an event. Called with Client.mu
// held.
func (c *Client) judgeClocks(event func(j *nodeset.Clocks)) {
	for i := range c.Nodes {
		c.bounds[i].mu.Lock()
	}
	event(c.clocks)
	for i := range c.Nodes {
		c.bounds[i].mu.Unlock()
	}
}

// read gives the judge of the clocks a reading. Called with Client.mu held.
func (c *Client) read(node int, r nodeset.Reading) (why protocol.Why) {
	why = protocol.Parted
	c.judgeClocks(func(j *nodeset.Clocks) {
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
func (c *Client) within(node int, r nodeset.Reading) bool {
	if c.parted.Load() {
		return false
	}
	b := &c.bounds[node]
	b.mu.Lock()
	ok := b.At() != 0 && b.Take(r)
	b.mu.Unlock()
	return ok
}
