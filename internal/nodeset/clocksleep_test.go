package nodeset

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A node that may have parted by as much, unnoticed, is no evidence.
func TestEvidenceExcludesThatWeSlept(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	c.now += 2000 * testMS
	c.receive(1)
	c.now += 100 * testMS
	// More than the 6 ms that node 1 may have gained, less than the 46 ms of the
	// others.
	c.slept(20 * time.Millisecond)
	assert.False(t, c.receive(1))
	assert.True(t, c.receive(0))
	assert.True(t, c.receive(2))
	assert.Equal(t, []ClockEventKind{ClockAsk}, c.kinds(), "no node is blamed")
}

func TestWeSlept(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{3, 5} {
		c := newCourt(t, nodes)
		c.slept(time.Hour)
		for i := range nodes / 2 {
			assert.False(t, c.receive(i))
		}
		c.kinds()
		late := at(c.now, c.now+8*testMS, c.ahead[nodes-1]-time.Hour.Milliseconds())
		assert.True(t, c.receive(nodes/2), "a majority does not jump")
		require.Equal(t, []ClockEventKind{ClockAsk, ClockStood, ClockEarly}, c.kinds()[:3])
		assert.False(t, c.Open())
		assert.False(t, c.Read(nodes-1, late), "an answer from before the sleep")
		for i := range nodes {
			assert.True(t, c.receive(i), "node %d", i)
		}
		assert.NotContains(t, c.kinds(), ClockAsk, "the others begin with the new time")
	}
}

// Nodes that have parted from us by different times have jumped, or so it may
// be.
func TestDifferentJumpsAreNotASleep(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	c.ahead[0] += 1000
	c.ahead[1] += 5000
	c.receive(0)
	assert.False(t, c.receive(1))
	assert.NotContains(t, c.kinds(), ClockStood)
}

// The kernel's word for a sleep is not exact: what was known before is no
// evidence, and no node is blamed. A node that was in doubt before stays so.
func TestSlept(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	c.ahead[0] += 5000
	c.receive(0)
	c.kinds()
	late := at(c.now, c.now+8*testMS, c.ahead[1])
	c.now += 1000 * testMS
	woke := c.now
	c.slept(-700 * time.Millisecond) // the kernel counts too much
	assert.False(t, c.receive(1), "this goroutine is the first to notice")
	c.Out = nil
	c.Slept(woke)
	assert.Equal(t, []ClockEvent{{Kind: ClockEarly, Nodes: 7, By: time.Second}}, c.Out, "or too little")
	c.kinds()
	assert.False(t, c.Read(1, late), "an answer from before the sleep")
	assert.True(t, c.receive(1))
	assert.True(t, c.receive(2))
	assert.False(t, c.receive(0))
	assert.NotContains(t, c.kinds(), ClockMark)
	assert.True(t, c.Open())
}

// The clock of tickets is the median of the nodes' clocks, without those in
// doubt, if there are others.
func TestMedian(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 5)
	at := func() int64 {
		ahead, known := c.Median()
		require.True(t, known)
		return (ahead + int64(2*testMS)) / 1e9
	}
	assert.EqualValues(t, 2e6, at(), "of 0 to 4e9 ms")
	c.ahead[4] -= 4e9
	c.receive(4)
	assert.EqualValues(t, 1e6, at(), "node 4 is in doubt: the lower one of 0 to 3e9 ms")
	for _, b := range c.bounds[:4] {
		b.Forget(0)
	}
	assert.Zero(t, at(), "it is the only one")
	c.bounds[4].Forget(0)
	_, known := c.Median()
	assert.False(t, known)
}

// Two answers of node 0 are given in the middle of a sleep. The first one
// excludes little, so the sleep is found with node 1. The second one shows a
// part of the sleep, and the rest is no jump of node 0.
func TestPartOfASleep(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	first := c.now + testMS
	c.now += 1000 * testMS
	for i := range c.ahead {
		require.True(t, c.receive(i))
	}
	second := c.now + testMS
	c.now += 2 * testMS
	for _, sent := range []protocol.Time{first, second} { // 500 ms after the process fell asleep
		c.Read(0, Reading{Sent: sent, Received: c.now, Micros: (c.ahead[0] + int64(c.now/testMS) + 500) * 1000})
	}
	c.slept(900 * time.Millisecond)
	c.receive(1)
	require.Contains(t, c.kinds(), ClockStood)
	require.True(t, c.receive(2))
	slow := at(c.now, c.now+1000*testMS, c.ahead[0])
	c.now += 1000 * testMS
	require.True(t, c.Read(0, slow))
	assert.False(t, c.receive(0), "400 ms ahead of what the second answer showed")
	for range 2 {
		c.receive(1)
		c.receive(2)
	}
	kinds := c.kinds()
	assert.NotContains(t, kinds, ClockReportJump)
	assert.NotContains(t, kinds, ClockMark)
	for c.Open() {
		c.now = c.Wake()
		c.Tick(c.now)
	}
	assert.NotContains(t, c.kinds(), ClockMark)

	for i := range c.ahead { // what is asked since confirms the bounds
		require.True(t, c.receive(i))
	}
	c.ahead[0] += 1000
	for i := range c.ahead {
		c.receive(i)
	}
	assert.Contains(t, c.kinds(), ClockMark)
}
