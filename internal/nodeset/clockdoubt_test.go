package nodeset

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client alone with a node cannot tell. The node does not count for half the
// guard time, and nothing that it said before.
func TestDoubt(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		nodes    int
		by, rest time.Duration
	}{
		{1, 300 * time.Millisecond, 10 * time.Second},
		{1, time.Hour, 10 * time.Second},
		{1, -time.Second, 200 * time.Millisecond},
		{1, -time.Hour, 200 * time.Millisecond},
		{3, 300 * time.Millisecond, 10 * time.Second},
	} {
		c := newCourt(t, r.nodes)
		c.ahead[0] += r.by.Milliseconds()
		began := c.now
		assert.False(t, c.receive(0))
		for c.Open() && c.now < began.Add(time.Minute) {
			at := c.Wake()
			require.NotEqual(t, protocol.Never, at)
			c.now = max(c.now+testMS, at)
			c.Tick(c.now)
			open := c.Open()
			assert.Equal(t, !open, c.receive(0))
		}
		assert.InDelta(t, r.rest, c.now.Sub(began), float64(20*time.Millisecond), "%v", r)
		var ends []ClockEvent
		for _, e := range c.Out {
			if e.Kind == ClockEarly {
				ends = append(ends, e)
			}
		}
		switch {
		case r.by < 0:
			assert.Empty(t, ends, "leases last longer")
		case assert.Len(t, ends, 2):
			assert.Equal(t, uint32(1), ends[0].Nodes)
			assert.GreaterOrEqual(t, ends[0].By, max(r.by, c.Longest), "all of each lease")
			assert.Equal(t, uint32(1)<<r.nodes-1, ends[1].Nodes, "no other node shows that we have not slept")
			assert.InDelta(t, r.by, ends[1].By, float64(r.by/40+10*time.Millisecond))
		}
		kinds := c.kinds()
		assert.Contains(t, kinds, ClockDoubted)
		assert.NotContains(t, kinds, ClockMark)
	}
}

// The guard time of the set grows from 20 s to 40 s. Another client may have a
// lease of 20 s by then, so a node in doubt does not count for 20 s, even if its
// clock had parted from ours before the change.
func TestDoubtLastsHalfOfALongerGuardTime(t *testing.T) {
	t.Parallel()
	const guard = 40 * time.Second
	for what, before := range map[string]bool{"before the clocks part": true,
		"while a node is in doubt": false} {
		c := newCourt(t, 1)
		if before {
			c.Regroup(c.Sets, guard)
		}
		c.ahead[0] += 300
		began := c.now
		c.receive(0)
		c.Tick(c.Wake())
		assert.Contains(t, c.kinds(), ClockDoubted)
		if !before {
			c.Regroup(c.Sets, guard)
		}
		for c.Open() && c.now < began.Add(time.Minute) {
			at := c.Wake()
			require.NotEqual(t, protocol.Never, at, what)
			c.now = max(c.now+testMS, at)
			c.Tick(c.now)
			open := c.Open()
			assert.Equal(t, !open, c.receive(0), what)
		}
		assert.InDelta(t, guard/2, c.now.Sub(began), float64(20*time.Millisecond), "the guard time grows %s", what)
	}
}

// Another node that has not parted from us shows that we have not slept: only
// the leases of the suspect end.
func TestDoubtOfOneNode(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	c.ahead[0] += 5000
	c.receive(0)
	c.receive(1)
	for range 5 {
		c.now += 250 * testMS
		c.Tick(c.now)
	}
	require.Equal(t, []ClockEventKind{ClockAsk, ClockDoubted, ClockEarly},
		[]ClockEventKind{c.Out[0].Kind, c.Out[1].Kind, c.Out[2].Kind})
	require.Len(t, c.Out, 3)
	assert.Equal(t, uint32(1), c.Out[2].Nodes)
	c.kinds()
	c.receive(2)
	assert.Equal(t, []ClockEventKind{ClockReportJump, ClockMark}, c.kinds(), "evidence may come late")
}

// What a node in doubt said counts again with its next answer.
func TestDoubtEndsWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	c := lease.NewClaim(lease.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour},
		Nodes: 3, NodeTimeout: time.Minute})
	c.Start(1, 64, 0, 0)
	yes := protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 64, Vote: true}
	for i := range 3 {
		c.Answer(2, protocol.Request{Node: i, Op: protocol.OpJoin, Sent: 1}, yes)
	}
	c.ShortenLeases(3, 1, 2*time.Hour)
	require.Equal(t, lease.Holding, c.State.Phase())
	assert.Equal(t, 2, c.State.Votes(4))
	c.Answer(6, protocol.Request{Node: 0, Op: protocol.OpBeat, Sent: 5}, yes)
	assert.Equal(t, 3, c.State.Votes(7))
	c.ShortenLeases(8, 3, 2*time.Hour)
	assert.Equal(t, lease.Lost, c.State.Phase(), "a majority is in doubt")
}
