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

func TestPushThatShowsAJump(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	assert.False(t,
		c.Read(1, Reading{Received: c.now, Micros: (c.ahead[1] + int64(c.now/testMS) + 1000) * 1000, Push: true}))
	require.Len(t, c.Out, 1)
	assert.Equal(t, ClockEvent{Kind: ClockAsk, Nodes: 2}, c.Out[0], "an answer will show by how much")
	assert.False(t, c.Open())
}

// A lease that a clock has ended earlier ends earlier for the claim.
func TestEarly(t *testing.T) {
	t.Parallel()
	c := lease.NewClaim(lease.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour},
		Nodes: 3, NodeTimeout: time.Minute})
	c.Start(1, 64, 0, 0)
	for i := range 3 {
		c.Answer(2, protocol.Request{Node: i, Op: protocol.OpJoin, Sent: 1},
			protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 64, Vote: true})
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
	c := lease.NewClaim(lease.Config{Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour},
		Nodes: 3, NodeTimeout: time.Minute})
	c.Start(1, 64, 0, 0)
	for i := range 3 {
		c.Answer(2, protocol.Request{Node: i, Op: protocol.OpJoin, Sent: 1},
			protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: 64, Vote: true})
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
		assert.Equal(t, []ClockEventKind{ClockAsk, ClockReportJump, ClockMark},
			c.kinds(), "%v", time.Duration(pause))
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
