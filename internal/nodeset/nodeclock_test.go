package nodeset

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testMS = protocol.Time(time.Millisecond)

// at is the reading of a node that is ahead of this process's clock by so many
// milliseconds, and answers at once.
func at(sent, received protocol.Time, ahead int64) Reading {
	return Reading{Sent: sent, Received: received, Micros: (ahead + int64(sent/testMS) + 1) * 1000}
}

// Bounds hold what the node's clock really shows, whether an answer tells its
// microseconds or has cut them to milliseconds.
func TestBoundsHoldACutClock(t *testing.T) {
	t.Parallel()
	const at = 100 * testMS
	for _, ahead := range []int64{0, 999, 1000, 999_999, 1_000_000, 1_999_999} {
		micros := (int64(at) + ahead) / 1000
		for _, shown := range []int64{micros, micros / 1000 * 1000} {
			low, top := Reading{Sent: at, Received: at, Micros: shown}.bounds()
			assert.LessOrEqual(t, low, ahead)
			assert.Greater(t, top, ahead)
		}
	}
}

// A node 1e12 ms ahead of us answers requests; in each row, after all rows
// before it.
func TestBoundsNoticeAJump(t *testing.T) {
	t.Parallel()
	const ms = testMS
	var b ClockBounds
	for _, r := range []struct {
		what           string
		sent, received protocol.Time
		ahead          int64
		jump           time.Duration
	}{
		{"the first answer", 100 * ms, 140 * ms, 1e12 + 10, 0},
		{"within the round trip", 200 * ms, 240 * ms, 1e12 + 30, 0},
		{"a quick answer narrows", 300 * ms, 302 * ms, 1e12 + 1, 0},
		{"as quick, 20 ms later", 302 * ms, 304 * ms, 1e12 + 21, 17 * time.Millisecond},
		{"and 20 ms earlier", 302 * ms, 304 * ms, 1e12 - 19, -17 * time.Millisecond},
		{"neither has moved the bounds", 304 * ms, 306 * ms, 1e12 + 1, 0},
		{"a slow answer says less", 302 * ms, 332 * ms, 1e12 + 21, 0},
		{"in a second, a clock may gain 20 ms", 1330 * ms, 1332 * ms, 1e12 + 21, 0},
		{"but no more", 2330 * ms, 2332 * ms, 1e12 + 61, 17 * time.Millisecond},
		{"and may lose as much", 2330 * ms, 2332 * ms, 1e12 + 1, 0},
	} {
		reading, by := at(r.sent, r.received, r.ahead), int64(0)
		if b.known {
			if lo, hi := b.parted(reading); lo > 0 {
				by = lo
			} else if hi < 0 {
				by = hi
			}
		}
		assert.InDelta(t, r.jump, by, float64(3*time.Millisecond), r.what)
		assert.Equal(t, r.jump == 0, b.Take(reading), r.what)
	}
	push := func(millis int64) Reading { return Reading{Received: 2400 * ms, Micros: millis * 1000, Push: true} }
	assert.True(t, b.Take(push(1e12+2400+3)), "a push may have been on its way for long")
	assert.True(t, b.Take(push(1e12)))
	assert.False(t, b.Take(push(1e12+2400+50)))
	b.Forget(0)
	assert.True(t, b.Take(push(1e12+2400+50)))
	assert.True(t, b.Take(at(2400*ms, 2402*ms, 5)), "the next answer sets the bounds")
}

// court is a judge over nodes whose clocks are ahead of this process's by ahead
// milliseconds.
type court struct {
	*Clocks
	t     *testing.T
	now   protocol.Time
	ahead []int64
}

func newCourt(t *testing.T, nodes int) *court {
	c := &court{t: t, now: 1000 * testMS, ahead: make([]int64, nodes)}
	bounds := make([]*ClockBounds, nodes)
	for i := range bounds {
		bounds[i] = new(ClockBounds)
		c.ahead[i] = 1e9 * int64(i)
	}
	c.Clocks = NewClocks(bounds, 200*time.Millisecond, 20*time.Second)
	for i := range 3 * nodes {
		require.True(t, c.receive(i%nodes))
	}
	return c
}

// receive has a node answer within 2 ms, and returns whether that counts.
func (c *court) receive(node int) bool {
	c.now += 2 * testMS
	counts := c.Read(node, at(c.now-2*testMS, c.now, c.ahead[node]))
	return counts
}

func (c *court) Tick(now protocol.Time) {
	c.Clocks.Tick(now)
}

func (c *court) slept(d time.Duration) {
	for i := range c.ahead {
		c.ahead[i] += d.Milliseconds()
	}
}

// kinds empties Out.
func (c *court) kinds() (kinds []ClockEventKind) {
	for _, e := range c.Out {
		kinds = append(kinds, e.Kind)
	}
	c.Out = nil
	return kinds
}

func TestJumpThatOthersContradict(t *testing.T) {
	t.Parallel()
	for _, by := range []int64{1000, -1000, 3600_000, -3600_000} {
		c := newCourt(t, 3)
		c.ahead[1] += by
		assert.False(t, c.receive(1))
		assert.Equal(t, []ClockEventKind{ClockAsk}, c.kinds())
		assert.True(t, c.receive(0))
		assert.Empty(t, c.kinds(), "one node alone may have slept with us")
		assert.True(t, c.receive(2))
		assert.Equal(t, []ClockEventKind{ClockReportJump, ClockMark}, c.kinds())
		assert.False(t, c.receive(1), "until it has a new incarnation")
		assert.Equal(t, []ClockEventKind{ClockMark}, c.kinds(), "the first may have been lost")
		c.IncarnationBegan(1)
		assert.False(t, c.Open())
		assert.True(t, c.receive(1))
	}
}

// What was sent before the suspicion, and what is known only since, is no
// evidence.
func TestEvidenceIsFreshAndRestsOnTheTimeBefore(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	old := at(c.now, c.now+8*testMS, c.ahead[2])
	c.ahead[1] += 1000
	c.receive(1)
	c.receive(0)
	c.Read(2, old)
	c.bounds[2].Forget(0)
	c.receive(2)
	c.receive(2)
	assert.Equal(t, []ClockEventKind{ClockAsk}, c.kinds()[:1])
	assert.Empty(t, c.kinds())

	d := newCourt(t, 3)
	d.bounds[2].Forget(0)
	d.now += 10 * testMS
	d.receive(2) // known since after node 1 was last heard of
	d.ahead[1] += 1000
	d.receive(1)
	d.receive(0)
	d.receive(2)
	assert.Equal(t, []ClockEventKind{ClockAsk}, d.kinds())
}

// A node that may have parted by as much, unnoticed, is no evidence.
func TestEvidenceExcludesThatWeSlept(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	c.now += 2000 * testMS
	c.receive(1)
	c.now += 100 * testMS
	c.slept(20 * time.Millisecond) // more than the 6 ms that node 1 may have gained, less than the 46 ms of the others
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
		assert.False(t, c.Read(nodes-1, late), "an answer of before the sleep")
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
	for what, before := range map[string]bool{"before the clocks part": true, "while a node is in doubt": false} {
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
	require.Equal(t, []ClockEventKind{ClockAsk, ClockDoubted, ClockEarly}, []ClockEventKind{c.Out[0].Kind, c.Out[1].Kind, c.Out[2].Kind})
	require.Len(t, c.Out, 3)
	assert.Equal(t, uint32(1), c.Out[2].Nodes)
	c.kinds()
	c.receive(2)
	assert.Equal(t, []ClockEventKind{ClockReportJump, ClockMark}, c.kinds(), "evidence may come late")
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
	assert.False(t, c.Read(1, late), "an answer of before the sleep")
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

func TestPushThatShowsAJump(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	assert.False(t, c.Read(1, Reading{Received: c.now, Micros: (c.ahead[1] + int64(c.now/testMS) + 1000) * 1000, Push: true}))
	require.Len(t, c.Out, 1)
	assert.Equal(t, ClockEvent{Kind: ClockAsk, Nodes: 2}, c.Out[0], "an answer will show by how much")
	assert.False(t, c.Open())
}

// A lease that a clock has ended earlier ends earlier for the claim.
func TestEarly(t *testing.T) {
	t.Parallel()
	c := lease.NewClaim(lease.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3, NodeTimeout: time.Minute})
	c.Start(1, 64, 0, 0)
	for i := range 3 {
		c.Answer(2, protocol.Request{Node: i, Op: protocol.OpJoin, Sent: 1}, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 64, Vote: true})
	}
	require.Equal(t, lease.Holding, c.State.Phase())
	c.ShortenLeases(3, 1, 50*time.Minute)
	assert.Equal(t, protocol.Time(1).Add(time.Hour), c.Deadline(), "two others remain")
	c.ShortenLeases(3, 2, 50*time.Minute)
	assert.Equal(t, protocol.Time(1).Add(10*time.Minute), c.Deadline())
	c.ShortenLeases(3, 7, 20*time.Minute)
	assert.Equal(t, lease.Lost, c.State.Phase())
}

// The deadline that a holder keeps while nodes are exchanged ends earlier, too.
func TestEarlyWhileADeadlineIsKept(t *testing.T) {
	t.Parallel()
	c := lease.NewClaim(lease.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3, NodeTimeout: time.Minute})
	c.Start(1, 64, 0, 0)
	for i := range 3 {
		c.Answer(2, protocol.Request{Node: i, Op: protocol.OpJoin, Sent: 1}, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 64, Vote: true})
	}
	c.ShortenLeases(3, 7, 10*time.Minute)
	require.Equal(t, protocol.Time(1).Add(50*time.Minute), c.Deadline())
	c.Regroup(4, protocol.Group{Nodes: 6, Sets: protocol.Quorums{Present: 0b111000}})
	require.Equal(t, protocol.Time(1).Add(50*time.Minute), c.Deadline(), "no new node has voted")
	c.ShortenLeases(5, 7, 20*time.Minute)
	assert.Equal(t, protocol.Time(1).Add(30*time.Minute), c.Deadline())
	c.ShortenLeases(6, 1, time.Hour)
	assert.Equal(t, lease.Lost, c.State.Phase())
}

// What a node in doubt said counts again with its next answer.
func TestDoubtEndsWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	c := lease.NewClaim(lease.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3, NodeTimeout: time.Minute})
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

// The bounds of a node took in a moment for which our clock stood still. What
// they show since does not exclude that moment.
func TestEvidenceIsWhatWasKnownBefore(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	c.now += 2000 * testMS
	c.receive(1)
	c.now += 100 * testMS
	c.slept(20 * time.Millisecond)
	for range 3 { // within the 46 ms that they may have gained
		require.True(t, c.receive(0))
		require.True(t, c.receive(2))
	}
	assert.False(t, c.receive(1))
	assert.True(t, c.receive(0))
	assert.True(t, c.receive(2))
	assert.Equal(t, []ClockEventKind{ClockAsk}, c.kinds(), "no node is blamed")
}

// An answer of node 1 was given before our clock stood still, and is read after
// the bounds of the others have taken that moment in. They seem to exclude it
// since then.
func TestEvidenceIsFromBeforeTheQuestion(t *testing.T) {
	c := newCourt(t, 3)
	c.now += 2000 * testMS
	c.receive(1)
	c.now += 100 * testMS
	buffered := at(c.now-testMS, c.now+10*testMS, c.ahead[1])
	c.slept(20 * time.Millisecond)
	require.True(t, c.receive(0)) // within the 46 ms that they may have gained
	require.True(t, c.receive(2))
	c.now += 6 * testMS
	require.True(t, c.Read(1, buffered))
	assert.False(t, c.receive(1))
	for range 2 {
		assert.True(t, c.receive(0))
		assert.True(t, c.receive(2))
	}
	assert.Equal(t, []ClockEventKind{ClockAsk}, c.kinds(), "no node is blamed")
}

// Nodes that are asked all the time show whose clock it was, by what was known
// of them a moment before the suspect was last asked.
func TestSmallJumpOfABusyNode(t *testing.T) {
	for _, pause := range []protocol.Time{testMS, 10 * testMS, 300 * testMS, 2000 * testMS} {
		c := newCourt(t, 3)
		for began := c.now; c.now < began.Add(30*time.Second); c.now += pause {
			for i := range c.ahead {
				require.True(t, c.receive(i))
			}
		}
		c.ahead[1] += 15 + int64(pause/testMS)/5
		assert.False(t, c.receive(1))
		c.receive(0)
		c.receive(2)
		assert.Equal(t, []ClockEventKind{ClockAsk, ClockReportJump, ClockMark}, c.kinds(), "%v", time.Duration(pause))
	}
}

// Of the bounds of any time within a quarter of the guard time some are kept
// that are not much older than that.
func TestPastBounds(t *testing.T) {
	c := newCourt(t, 3)
	b := c.bounds[0]
	began := c.now
	for c.now < began.Add(20*time.Second) {
		for range 23 {
			require.True(t, c.receive(0))
		}
		for age := 3 * testMS; age < min(5000*testMS, c.now-began); age += age / 3 {
			s := b.before(c.now - age)
			require.NotZero(t, s.at)
			require.Less(t, s.at, c.now-age)
			require.LessOrEqual(t, c.now-s.at, 4*age+100*testMS)
		}
	}
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
