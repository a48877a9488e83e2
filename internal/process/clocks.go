package process

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// nodeBounds is what is known about the clock of one node; mu guards it.
type nodeBounds struct {
	mu sync.Mutex
	nodeset.ClockBounds
}

func boundsOf(nodes []nodeBounds) (bounds []*nodeset.ClockBounds) {
	for i := range nodes {
		bounds = append(bounds, &nodes[i].ClockBounds)
	}
	return bounds
}

// Bounds returns when the bounds of the clock of a node were last confirmed, 0
// if there are none, and how far apart they are.
func (c *Client) Bounds(now protocol.Time, node int) (at protocol.Time, width time.Duration) {
	b := &c.bounds[node]
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.At(), b.Width(now)
}

// Clock returns the time that the clocks of the nodes show, in microseconds:
// see [nodeset.Clocks.Median]. Before any clock is known it is near 0. It does
// not use this process's wall clock.
func (c *Client) Clock(now protocol.Time) protocol.Ticket {
	shown := protocol.Ticket(max(0, int64(now)+c.ahead.Load()) / 1000)
	if c.Skewed != nil {
		shown = c.Skewed(shown)
	}
	return shown
}

// judgeClocks passes an event to the Clocks with all bounds locked. Called with
// Client.mu held.
// Invariant: parted is written before the bounds are unlocked. An event that
// finds that clocks disagree may have replaced the bounds of that node, so its
// next reading is within them.
func (c *Client) judgeClocks(event func(j *nodeset.Clocks)) {
	for i := range c.Nodes {
		c.bounds[i].mu.Lock()
	}
	event(c.clocks)
	c.parted.Store(c.clocks.Open())
	for i := range c.Nodes {
		c.bounds[i].mu.Unlock()
	}
}

// read passes a reading of the clock of a node to the Clocks, and returns
// whether the reply counts. Called with Client.mu held.
func (c *Client) read(node int, r nodeset.Reading) (why protocol.Why) {
	why = protocol.Parted
	c.judgeClocks(func(j *nodeset.Clocks) {
		if j.Read(node, r) {
			why = protocol.Counts
		}
	})
	return why
}

// within reports whether a reading is within the bounds of the clock of its
// node, and narrows the bounds by it. It takes only the lock of these bounds.
// Invariant: a reading counts without Client.mu only while no clocks are known
// to disagree. The first reading that is out of bounds takes Client.mu and
// records the disagreement.
func (c *Client) within(node int, r nodeset.Reading) bool {
	b := &c.bounds[node]
	b.mu.Lock()
	defer b.mu.Unlock()
	return !c.parted.Load() && b.At() != 0 && b.Take(r)
}
