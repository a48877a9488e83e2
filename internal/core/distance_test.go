package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/protocol"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	distances(t)
}

func distances(t assert.TestingT) {
	const ms = time.Millisecond
	var d distance
	best := func() time.Duration { return time.Duration(d.best.Load()) }
	now := protocol.Time(0)
	d.begin(now, 5*ms)
	assert.Equal(t, 5*ms, best())
	d.took(now.Add(1), 3*ms)
	d.took(now.Add(2), 800*ms) // it has much to do
	assert.Equal(t, 3*ms, best())
	for range 2 { // the route has changed
		now = now.Add(distanceWindow + 1)
		d.took(now, 400*ms)
	}
	assert.Equal(t, 400*ms, best())
	d.took(now.Add(1), 2*ms)
	assert.Equal(t, 2*ms, best(), "nearer counts at once")
}

func TestPatience(t *testing.T) {
	t.Parallel()
	patiences(t)
}

func patiences(t assert.TestingT) {
	const ms = time.Millisecond
	s := Defaults()
	for _, c := range []struct {
		trips  []time.Duration
		unwell uint32
		want   time.Duration
	}{
		{[]time.Duration{0, 0, 0}, 0, 200 * ms},
		{[]time.Duration{ms, ms, 90 * ms}, 0, 200 * ms},
		{[]time.Duration{ms, ms, 500 * ms}, 0, 200 * ms}, // the third is not needed
		{[]time.Duration{ms, 500 * ms, 400 * ms}, 0, 800 * ms},
		{[]time.Duration{ms, 2 * ms, 500 * ms}, 1, 1000 * ms}, // the first is down
		{[]time.Duration{3000 * ms, 3000 * ms, 3000 * ms}, 0, 2000 * ms},
		{[]time.Duration{300 * ms, 300 * ms, 300 * ms}, 7, 200 * ms},
	} {
		q := &Quorum{set: s}
		for i, trip := range c.trips {
			n := &node{index: i}
			n.distance.begin(0, trip)
			q.nodes = append(q.nodes, n)
		}
		assert.Equal(t, c.want, q.patience(&s, c.unwell), "%v %b", c.trips, c.unwell)
	}
}
