package lease_test

import (
	"math/bits"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

const ms = time.Millisecond

// paced is a Fanout of nodes that answer within so many microseconds.
func paced(us ...int) *lease.Fanout {
	f := lease.NewFanout(len(us))
	for i, d := range us {
		f.Answered(0, i, time.Duration(d)*time.Microsecond, 200*ms)
	}
	return f
}

// deferring is an attempt that defers nodes where that is possible.
type deferring struct {
	lease.Config
	lease.Links
	contended bool
}

func newDeferring() *deferring {
	d := &deferring{Links: lease.Links{Busy: 31}}
	d.ID, d.ShortHold, d.NodeTimeout = protocol.ID{3: 1}, true, 200*ms
	return d
}

// of returns what it defers of so many nodes.
func (d *deferring) of(nodes int, f *lease.Fanout, name string) (uint32, time.Duration) {
	d.Sets = protocol.Majority(nodes)
	out := f.Defer(&d.Config, name, d.contended, d.Links)
	return out.Nodes, out.After
}

func TestDeferSparesEachNodeForItsShareOfNames(t *testing.T) {
	t.Parallel()
	f := paced(100, 100, 100, 100, 100)
	first := make([]int, 5)
	for i := range 1000 {
		nodes, after := newDeferring().of(5, f, strconv.Itoa(i))
		assert.Equal(t, 2, bits.OnesCount32(nodes))
		assert.Equal(t, 800*time.Microsecond, after)
		for n := range first {
			if nodes&(1<<n) == 0 {
				first[n]++
			}
		}
	}
	for n, names := range first {
		assert.InDelta(t, 600, names, 100, "node %d is among the first for its share of names", n)
	}
	here, _ := newDeferring().of(5, f, "a name")
	there, _ := newDeferring().of(5, paced(90, 110, 95, 120, 100), "a name")
	assert.Equal(t, here, there, "for a name all clients begin with the same nodes")
}

func TestDeferLeavesOutTheSlow(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		nodes, after := newDeferring().of(5, paced(30_000, 100, 60_000, 120, 90), strconv.Itoa(i))
		assert.EqualValues(t, 0b00101, nodes)
		assert.Less(t, after, ms)

		// With a majority far away a quarter more is no reason.
		nodes, after = newDeferring().of(5, paced(1000, 30_000, 31_000, 60_000, 2000), strconv.Itoa(i))
		assert.NotZero(t, nodes&0b01000)
		assert.Equal(t, 50*ms, after, "and the others need not wait for longer")
	}
}

// A node that is unhealthy is asked at once and not waited for.
func TestDeferAsksUnhealthyNodes(t *testing.T) {
	t.Parallel()
	f := paced(100, 100, 100, 100, 100)
	with := func(unhealthy uint32) uint32 {
		d := newDeferring()
		d.Unhealthy = unhealthy
		nodes, _ := d.of(5, f, "a name")
		return nodes
	}
	assert.Zero(t, with(0b01001), "three are left: all of them are needed")
	assert.Equal(t, 1, bits.OnesCount32(with(0b01000)))
	assert.Zero(t, with(0b01000)&0b01000)
	assert.True(t, f.UpdateRecovering(2, true))
	assert.Zero(t, with(0b01000))
	assert.Zero(t, with(0b11000), "there is no quorum to be had: all are asked")
}

func TestDeferAsksAllAtOnce(t *testing.T) {
	t.Parallel()
	f := paced(100, 100, 100, 100, 100)
	for what, change := range map[string]func(d *deferring){
		"every so often":                     func(d *deferring) { d.ID[3] = 32 },
		"what is usually held for long":      func(d *deferring) { d.ShortHold = false },
		"what decides a configuration":       func(d *deferring) { d.Succession = true },
		"where others are":                   func(d *deferring) { d.contended = true },
		"what will not be brought to others": func(d *deferring) { d.NoRenewal = true },
		"where a minority has much to do":    func(d *deferring) { d.Busy = 2 },
		"where the nodes have little to do":  func(d *deferring) { d.Busy = 0 },
	} {
		d := newDeferring()
		nodes, _ := d.of(5, f, "a name")
		assert.NotZero(t, nodes)
		change(d)
		nodes, _ = d.of(5, f, "a name")
		assert.Zero(t, nodes, what)
	}
	for n, want := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 7: 3} {
		nodes, _ := newDeferring().of(n, paced(make([]int, n)...), "a name")
		assert.Equal(t, want, bits.OnesCount32(nodes), "of %d nodes", n)
	}
}

func TestFanoutKnowsTheRoute(t *testing.T) {
	t.Parallel()
	route(t)
}

// route holds a node's distance to the shortest of its recent answers.
func route(t assert.TestingT) {
	f := lease.NewFanout(1)
	now := protocol.Time(0)
	f.Begin(now, 0, 5*ms)
	assert.Equal(t, 5*ms, f.QuorumTrip(protocol.Majority(1), 0))
	f.Answered(now.Add(1), 0, 3*ms, time.Second)
	f.Answered(now.Add(2), 0, 800*ms, time.Second) // it has much to do
	assert.Equal(t, 3*ms, f.QuorumTrip(protocol.Majority(1), 0))
	for range 2 { // the route has changed
		now = now.Add(10*time.Second + 1)
		f.Answered(now, 0, 400*ms, time.Second)
	}
	assert.Equal(t, 400*ms, f.QuorumTrip(protocol.Majority(1), 0))
	f.Answered(now.Add(1), 0, 2*ms, time.Second)
	assert.Equal(t, 2*ms, f.QuorumTrip(protocol.Majority(1), 0), "nearer counts at once")
}

func TestFanoutWaitsForTheNearestQuorum(t *testing.T) {
	t.Parallel()
	nearest(t)
}

// nearest holds the time that a needed node is waited for to the distance of
// the nearest quorum.
func nearest(t assert.TestingT) {
	three, far := protocol.Majority(3), 500*ms
	for _, c := range []struct {
		trips     []time.Duration
		sets      protocol.Quorums
		unhealthy uint32
		want      time.Duration
	}{
		{[]time.Duration{0, 0, 0}, three, 0, 200 * ms},
		{[]time.Duration{ms, ms, 90 * ms}, three, 0, 200 * ms},
		{[]time.Duration{ms, ms, 500 * ms}, three, 0, 200 * ms}, // the third is not needed
		{[]time.Duration{ms, 500 * ms, 400 * ms}, three, 0, 800 * ms},
		{[]time.Duration{ms, 2 * ms, 500 * ms}, three, 1, 1000 * ms}, // the first is down
		{[]time.Duration{3000 * ms, 3000 * ms, 3000 * ms}, three, 0, 2000 * ms},
		{[]time.Duration{300 * ms, 300 * ms, 300 * ms}, three, 7, 200 * ms},
		// Nodes that have left the set.
		{[]time.Duration{far, far, ms, ms, ms}, protocol.Quorums{Present: 0b11100}, 0, 200 * ms},
		{[]time.Duration{far, far, ms, ms, far}, protocol.Quorums{Present: 0b11100}, 0, 200 * ms},
		{[]time.Duration{ms, ms, ms, ms, far, far}, protocol.Quorums{Present: 0b111000}, 0, 1000 * ms},
		// The second set needs the nodes that enter.
		{[]time.Duration{ms, ms, far, far}, protocol.Quorums{Present: 0b0011, Next: 0b1101}, 0, 1000 * ms},
		{[]time.Duration{ms, ms, ms, far}, protocol.Quorums{Present: 0b0111, Next: 0b1011}, 0, 200 * ms},
	} {
		f := lease.NewFanout(len(c.trips))
		longest := 200 * ms
		for i, trip := range c.trips {
			f.Begin(0, i, trip)
			if c.sets.All()&(1<<i) != 0 {
				longest = max(longest, min(2*trip, 2000*ms))
			}
		}
		assert.Equal(t, c.want, f.QuorumTimeout(c.sets, c.unhealthy, 200*ms, 8*time.Second), "%v %b", c.trips,
			c.unhealthy)
		assert.Equal(t, longest, f.LongestTimeout(c.sets.All(), 200*ms, 8*time.Second))
	}
}
