package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testMS = Time(time.Millisecond)

// at is the reading of a node that is ahead of this process's clock by so many
// milliseconds, and answers at once.
func at(sent, received Time, ahead int64) Reading {
	return Reading{Sent: sent, Received: received, Millis: ahead + int64(sent/testMS) + 1}
}

// A node 1e12 ms ahead of us answers requests; in each row, after all rows
// before it.
func TestBoundsNoticeAJump(t *testing.T) {
	t.Parallel()
	const ms = testMS
	var b ClockBounds
	for _, r := range []struct {
		what           string
		sent, received Time
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
	push := func(millis int64) Reading { return Reading{Received: 2400 * ms, Millis: millis, Push: true} }
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
	now   Time
	ahead []int64
}

func newCourt(t *testing.T, nodes int) *court {
	c := &court{t: t, now: 1000 * testMS, ahead: make([]int64, nodes)}
	bounds := make([]*ClockBounds, nodes)
	for i := range bounds {
		bounds[i] = new(ClockBounds)
		c.ahead[i] = int64(1e9 * i)
	}
	c.Clocks = NewClocks(bounds, 200*time.Millisecond, 20*time.Second)
	for i := range 3 * nodes {
		require.True(t, c.receive(i%nodes))
	}
	return c
}

// receive has a node answer within 2 ms, and returns whether that counts at
// once.
func (c *court) receive(node int) bool {
	counts, late := c.answer(node)
	return counts && late == 0
}

func (c *court) answer(node int) (bool, time.Duration) {
	c.now += 2 * testMS
	counts, late := c.Read(node, at(c.now-2*testMS, c.now, c.ahead[node]))
	c.guards()
	return counts, late
}

func (c *court) Tick(now Time) {
	c.Clocks.Tick(now)
	c.guards()
}

// guards answers what is asked about guard times: they are those of this
// client.
func (c *court) guards() {
	asked := c.Out
	c.Out = nil
	for _, e := range asked {
		if e.Kind == ClockGuard {
			c.Guard(c.now, e.Node, 20*time.Second)
		} else {
			c.Out = append(c.Out, e)
		}
	}
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
		assert.Equal(t, []ClockEventKind{ClockJumped, ClockMark}, c.kinds())
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
		counts, _ := c.Read(nodes-1, late)
		assert.False(t, counts, "an answer of before the sleep")
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

// A client alone with a node cannot tell. Its leases end earlier, and the
// node's votes count when its old clock would show the new time, for half the
// guard time.
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
			require.NotEqual(t, Never, at)
			c.now = max(c.now+testMS, at)
			c.Tick(c.now)
			if counts, late := c.answer(0); c.Open() && r.by > 0 {
				assert.True(t, counts)
				assert.InDelta(t, r.by, late, float64(r.by/40+10*time.Millisecond))
			}
		}
		assert.InDelta(t, r.rest, c.now.Sub(began), float64(20*time.Millisecond), "%v", r)
		var nodes uint32
		for _, e := range c.Out {
			if e.Kind == ClockEarly {
				assert.Zero(t, nodes&e.Nodes, "twice")
				nodes |= e.Nodes
				assert.InDelta(t, r.by, e.By, float64(r.by/40+10*time.Millisecond))
			}
		}
		if r.by > 0 {
			assert.Equal(t, uint32(1)<<r.nodes-1, nodes, "no other node shows that we have not slept")
		}
		kinds := c.kinds()
		assert.Contains(t, kinds, ClockDoubted)
		assert.NotContains(t, kinds, ClockMark)
		assert.Equal(t, ClockCleared, kinds[len(kinds)-1])
		assert.True(t, c.receive(0))
	}
}

// Another node that has not parted from us shows that we have not slept: only
// the leases of the suspect end earlier. If it turns out later that it was
// asleep, nothing ends twice.
func TestDoubtOfOneNode(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	c.ahead[0] += 5000
	c.receive(0)
	c.receive(1)
	c.now += 250 * testMS
	c.Tick(c.now)
	require.Equal(t, []ClockEventKind{ClockAsk, ClockDoubted, ClockEarly}, []ClockEventKind{c.Out[0].Kind, c.Out[1].Kind, c.Out[2].Kind})
	assert.Equal(t, uint32(1), c.Out[2].Nodes)
	c.kinds()
	c.receive(2)
	assert.Equal(t, []ClockEventKind{ClockJumped, ClockMark}, c.kinds(), "evidence may come late")

	d := newCourt(t, 3)
	d.slept(5 * time.Second)
	d.receive(0)
	for range 2 {
		d.now += 500 * testMS
		d.Tick(d.now)
	}
	require.Equal(t, ClockEarly, d.Out[len(d.Out)-1].Kind)
	assert.Equal(t, uint32(6), d.Out[len(d.Out)-1].Nodes, "no other node has answered")
	d.kinds()
	d.receive(1)
	assert.NotContains(t, d.kinds(), ClockEarly, "that has been said")
}

func TestPushThatShowsAJump(t *testing.T) {
	t.Parallel()
	c := newCourt(t, 3)
	counts, _ := c.Read(1, Reading{Received: c.now, Millis: c.ahead[1] + int64(c.now/testMS) + 1000, Push: true})
	assert.False(t, counts)
	require.Len(t, c.Out, 1)
	assert.Equal(t, ClockEvent{Kind: ClockAsk, Nodes: 2}, c.Out[0], "an answer will show by how much")
	assert.False(t, c.Open())
}

// A lease that a clock has ended earlier ends earlier for the claim.
func TestEarly(t *testing.T) {
	t.Parallel()
	c := NewClaim(Config{Terms: Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3, NodeTimeout: time.Minute})
	c.Start(1, 64, 0, 0)
	for i := range 3 {
		c.Answer(2, Request{Node: i, Op: OpJoin, Sent: 1}, Answer{Status: OK, Incarnation: 1, Ticket: 64, Vote: true})
	}
	require.Equal(t, Holding, c.Phase())
	c.Early(3, 1, 50*time.Minute)
	assert.Equal(t, Time(1).Add(time.Hour), c.Deadline(), "two others remain")
	c.Early(3, 2, 50*time.Minute)
	assert.Equal(t, Time(1).Add(10*time.Minute), c.Deadline())
	c.Early(3, 7, 20*time.Minute)
	assert.Equal(t, Lost, c.Phase())
}

// The deadline that a holder keeps while nodes are exchanged ends earlier, too:
// once, where two clocks show one sleep. What clocks had shown when it was kept
// is in it.
func TestEarlyWhileADeadlineIsKept(t *testing.T) {
	t.Parallel()
	c := NewClaim(Config{Terms: Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3, NodeTimeout: time.Minute})
	c.Start(1, 64, 0, 0)
	for i := range 3 {
		c.Answer(2, Request{Node: i, Op: OpJoin, Sent: 1}, Answer{Status: OK, Incarnation: 1, Ticket: 64, Vote: true})
	}
	c.Early(3, 7, 10*time.Minute)
	require.Equal(t, Time(1).Add(50*time.Minute), c.Deadline())
	c.Regroup(4, Group{Nodes: 6, Sets: Quorums{present: 0b111000}})
	require.Equal(t, Time(1).Add(50*time.Minute), c.Deadline(), "no new node has voted")
	c.Early(5, 1, 20*time.Minute)
	c.Early(6, 2, 20*time.Minute)
	assert.Equal(t, Time(1).Add(30*time.Minute), c.Deadline())
	c.Early(7, 2, 10*time.Minute)
	assert.Equal(t, Time(1).Add(20*time.Minute), c.Deadline())
	c.Early(8, 8, time.Hour)
	assert.Equal(t, Lost, c.Phase())
}

// A vote of a node whose clock may have jumped counts later, by an answer then.
func TestLateVote(t *testing.T) {
	t.Parallel()
	for _, push := range []bool{false, true} {
		for _, try := range []bool{false, true} {
			c := NewClaim(Config{Terms: Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 1, NodeTimeout: time.Minute, Try: try})
			c.Start(1, 64, 0, 0)
			yes := Answer{Status: OK, Incarnation: 1, Ticket: 64, Vote: true, Late: time.Second}
			if push && try {
				continue // it does not wait for one
			}
			if push {
				c.Answer(2, Request{Op: OpJoin, Sent: 1}, Answer{Status: OK, Incarnation: 1, Ticket: 64})
				c.Push(2, 0, Push{Incarnation: 1, Ticket: 64, Vote: true, Late: time.Second})
			} else {
				c.Answer(2, Request{Op: OpJoin, Sent: 1}, yes)
			}
			require.Equal(t, Waiting, c.Phase())
			require.Equal(t, Time(2).Add(time.Second), c.Wake())
			c.Renew(3)
			c.Sent()
			c.Tick(c.Wake())
			require.Len(t, c.Out, 1)
			c.Answer(Time(3).Add(time.Second), c.Out[0], yes)
			assert.Equal(t, Holding, c.Phase())
		}
	}
}

// A node that has refused a request is asked again with the next beats only. A
// push of it whose vote counts later does not have the claim wake up for
// nothing until then.
func TestLateVoteOfANodeThatRefused(t *testing.T) {
	c := NewClaim(Config{Terms: Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3, NodeTimeout: time.Minute})
	c.Start(1, 64, 0, 0)
	for i := range 2 {
		c.Answer(2, Request{Node: i, Op: OpJoin, Sent: 1}, Answer{Status: OK, Incarnation: 1, Ticket: 64})
	}
	require.Equal(t, Waiting, c.Phase())
	c.Up(3, 0)
	c.Fail(4, Request{Node: 0, Op: OpBeat, Sent: 3}, true)
	c.Push(5, 1, Push{Incarnation: 1, Ticket: 64, Vote: true})
	c.Push(5, 0, Push{Incarnation: 1, Ticket: 64, Vote: true, Late: time.Second})
	for now := Time(6); now < Time(time.Hour) && c.Phase() == Waiting; {
		c.Sent()
		now = max(now, c.Wake())
		c.Tick(now)
		require.Greater(t, c.Wake(), now, "it wants another Tick at once")
		for _, r := range c.Out {
			if r.Node == 0 {
				c.Answer(now+1, r, Answer{Status: OK, Incarnation: 1, Ticket: 64, Vote: true})
			}
		}
	}
	assert.Equal(t, Holding, c.Phase(), "by the answer to a beat")
}

// A vote counts later by that much after the node has given it. A push may be
// older than the view, and a lease that has ended may have taken its vote with
// it: neither tells of when the vote that an answer brings was given.
func TestLateVoteThatIsNewer(t *testing.T) {
	t.Parallel()
	const late = time.Second
	no := Answer{Status: OK, Incarnation: 1, Ticket: 64}
	yes := Answer{Status: OK, Incarnation: 1, Ticket: 64, Vote: true, Late: late}
	for name, first := range map[string]func(t *testing.T, c *Claim) Time{
		"a push of before": func(t *testing.T, c *Claim) Time {
			c.Answer(3, Request{Op: OpJoin, Sent: 1}, no)
			c.Sent()
			c.Answer(5, Request{Op: OpBeat, Sent: 4}, Answer{Status: Missing, Incarnation: 1})
			require.Len(t, c.Out, 1)
			settle := c.Out[0]
			require.Equal(t, OpSettle, settle.Op)
			c.Sent()
			c.Answer(6, settle, no)
			c.Push(7, 0, Push{Incarnation: 1, Ticket: 64, Vote: true, Late: late})
			require.Len(t, c.Out, 1, "it is a reason to ask")
			c.Sent()
			return 7
		},
		"a lease that has ended": func(_ *testing.T, c *Claim) Time {
			c.Answer(3, Request{Op: OpJoin, Sent: 1}, yes)
			c.peers[0].ackSent -= Time(c.TTL)
			return 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewClaim(Config{Terms: Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 3, NodeTimeout: time.Minute})
			c.Start(1, 64, 0, 0)
			c.Answer(2, Request{Node: 1, Op: OpJoin, Sent: 1}, Answer{Status: OK, Incarnation: 2, Ticket: 64, Vote: true})
			c.Answer(2, Request{Node: 2, Op: OpJoin, Sent: 1}, Answer{Status: OK, Incarnation: 3, Ticket: 64})
			now := first(t, c).Add(late)
			c.Answer(now, Request{Op: OpBeat, Sent: now - 1}, yes)
			assert.Equal(t, Waiting, c.Phase(), "the vote may be of this moment")
			now = now.Add(late)
			c.Answer(now, Request{Op: OpBeat, Sent: now - 1}, yes)
			assert.Equal(t, Holding, c.Phase())
		})
	}
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
	counts, _ := c.Read(1, buffered)
	require.True(t, counts)
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
	for _, pause := range []Time{testMS, 10 * testMS, 300 * testMS, 2000 * testMS} {
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
		assert.Equal(t, []ClockEventKind{ClockAsk, ClockJumped, ClockMark}, c.kinds(), "%v", time.Duration(pause))
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
	for _, sent := range []Time{first, second} { // 500 ms after the process fell asleep
		c.Read(0, Reading{Sent: sent, Received: c.now, Millis: c.ahead[0] + int64(c.now/testMS) + 500})
	}
	c.slept(900 * time.Millisecond)
	c.receive(1)
	require.Contains(t, c.kinds(), ClockStood)
	require.True(t, c.receive(2))
	slow := at(c.now, c.now+1000*testMS, c.ahead[0])
	c.now += 1000 * testMS
	counts, _ := c.Read(0, slow)
	require.True(t, counts)
	assert.False(t, c.receive(0), "400 ms ahead of what the second answer showed")
	for range 2 {
		c.receive(1)
		c.receive(2)
	}
	kinds := c.kinds()
	assert.NotContains(t, kinds, ClockJumped)
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

// A try does not wait for a vote that counts later than an answer would be
// waited for. What is missing then is not the turn.
func TestTryDoesNotWaitForALateVote(t *testing.T) {
	t.Parallel()
	for late, want := range map[time.Duration]Phase{200 * time.Millisecond: Waiting, 300 * time.Millisecond: NoQuorum} {
		c := NewClaim(Config{Terms: Terms{Weight: 1, Capacity: 1, TTL: time.Second}, Nodes: 1, NodeTimeout: 100 * time.Millisecond, Try: true})
		c.Start(1, 64, 0, 0)
		c.Answer(2, Request{Op: OpJoin, Sent: 1}, Answer{Status: OK, Incarnation: 1, Ticket: 64, Vote: true, Late: late})
		assert.Equal(t, want, c.Phase(), "%v", late)
		assert.Zero(t, c.Known(2), "%v", late)
	}
}
