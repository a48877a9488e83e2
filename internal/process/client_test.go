package process_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// wall is what these tests take for the nodes' clocks: it stands still.
const wall = protocol.Ticket(1_700_000_000_000_000)

// testProcess is a Client whose nodes all vote, and one attempt of it.
type testProcess struct {
	*process.Client
	name process.Name
	a    process.Attempt
	now  protocol.Time
	sent []protocol.Request // that were handed to links
}

const (
	aTTL     = 8 * time.Second
	aTimeout = 200 * time.Millisecond

	guardTime = 10 * time.Second
)

func newProcess(nodes int) *testProcess {
	p := &testProcess{now: protocol.Time(time.Second), Client: process.NewClient(process.ClientConfig{
		Nodes: nodes, TTL: aTTL, NodeTimeout: aTimeout, Guard: guardTime,
		Skewed: func(protocol.Ticket) protocol.Ticket { return wall },
	})}
	for i := range nodes {
		p.Connect(p.now, i, time.Millisecond)
		p.Show(p.now, i, protocol.Incarnation(i+1))
		p.Up(p.now, i)
	}
	p.Tick(p.now)
	return p
}

// begin begins an attempt, and sends nothing.
func (p *testProcess) begin(a *process.Attempt, n *process.Name, succession bool) {
	cfg := p.Config(succession)
	cfg.Terms = protocol.Terms{Weight: 1, Capacity: 1, TTL: aTTL}
	cfg.NodeTimeout, cfg.Drift = aTimeout, aTTL/32
	p.Start(p.now, a, n, cfg, lease.Links{}, lease.Deferral{})
}

// start starts the attempt.
func (p *testProcess) start() {
	p.begin(&p.a, &p.name, false)
	p.flush()
}

// flush hands over what the attempt wants sent.
func (p *testProcess) flush() {
	send, _ := p.a.Step(&p.name)
	for i := range send {
		p.sent = append(p.sent, send[i])
		p.a.Sent(&send[i], true)
	}
}

// pass lets time pass, with the ticks that the attempt wants.
func (p *testProcess) pass(d time.Duration) {
	for end := p.now.Add(d); p.now < end; {
		p.now = max(p.now, min(end, p.a.Wake()))
		p.a.Tick(p.now)
		p.flush()
		p.now++
	}
}

// answer answers a request of the attempt.
func (p *testProcess) answer(r protocol.Request, a protocol.Answer) protocol.Verdict {
	a.Clock = int64(p.now) / 1e3
	if a.Incarnation == 0 {
		a.Incarnation = protocol.Incarnation(r.Node + 1)
	}
	v, _ := p.Reply(p.now, &p.name, &r, &a)
	p.Answer(p.now, &p.a, &p.name, &r, &a, v)
	p.flush()
	return v
}

// A reply of another incarnation moves nothing: neither the bounds of the
// node's clock nor the tickets of the name.
func TestReplyThatDoesNotCount(t *testing.T) {
	t.Parallel()
	otherIncarnationShowsATicket(t)
}

func otherIncarnationShowsATicket(t assert.TestingT) {
	p := newProcess(3)
	p.start()
	v := p.answer(p.sent[0], protocol.Answer{Status: protocol.OK, Incarnation: 77,
		Ticket: wall + 1000*protocol.Residues})
	assert.Equal(t, protocol.OtherIncarnation, v.Why)
	at, _ := p.Bounds(p.now, 0)
	assert.Zero(t, at)
	var next process.Attempt
	p.begin(&next, &p.name, false)
	assert.Less(t, next.State.Ticket(), wall+3*protocol.Residues)
}

// A reply that was not judged does not count.
func TestReplyThatWasNotJudged(t *testing.T) {
	t.Parallel()
	p := newProcess(1)
	p.start()
	r := p.sent[0]
	a := protocol.Answer{Status: protocol.OK, Vote: true, HasTotals: true,
		Ticket: p.a.State.Ticket(), Incarnation: 1}
	p.Answer(p.now, &p.a, &p.name, &r, &a, protocol.Verdict{})
	assert.Equal(t, lease.Joining, p.a.State.Phase())
}

// The answer to a request that the claim wanted to repeat is the answer to
// both.
func TestAnswerOfARequestThatWasRepeated(t *testing.T) {
	t.Parallel()
	mergedAnswer(t)
}

func mergedAnswer(t assert.TestingT) {
	p := newProcess(3)
	p.start()
	p.pass(2 * aTimeout)
	joins := slices.Clone(p.sent)
	assert.Len(t, joins, 3, "what is unanswered is not repeated")
	for _, r := range joins {
		p.answer(r, protocol.Answer{Status: protocol.OK, Vote: true, HasTotals: true, Ticket: p.a.State.Ticket()})
	}
	assert.Equal(t, lease.Holding, p.a.State.Phase())
	p.pass(2 * aTimeout)
	assert.Len(t, p.sent, 3, "no node is asked before the next beat")
}

// After a reconnect a node is asked though it has not answered the same request
// yet.
func TestNodeIsAskedAfterAReconnect(t *testing.T) {
	t.Parallel()
	askedAgain(t)
}

func askedAgain(t assert.TestingT) {
	p := newProcess(3)
	p.start()
	p.pass(aTimeout + aTimeout/16)
	p.a.Up(p.now, 1)
	p.flush()
	assert.Len(t, p.sent, 4)
}

// The head of a queue learns soon that another Redlock client's key is gone.
func TestHeadOfAQueueBehindAnotherClientsKey(t *testing.T) {
	t.Parallel()
	foreignKey(t)
}

func foreignKey(t assert.TestingT) {
	p := newProcess(3)
	p.start()
	for _, r := range slices.Clone(p.sent) {
		p.answer(r, protocol.Answer{Status: protocol.OK, Foreign: true, HasTotals: true,
			Ticket: p.a.State.Ticket(), Wait: time.Minute})
	}
	assert.Equal(t, lease.Waiting, p.a.State.Phase())
	assert.LessOrEqual(t, p.a.Wake(), p.now.Add(100*time.Millisecond))
}

// An open ends with its hold. A put goes on for a while.
func TestRunWithoutAHold(t *testing.T) {
	t.Parallel()
	openWithoutAHold(t)
}

func openWithoutAHold(t assert.TestingT) {
	p := newProcess(3)
	open, put := lease.RegisterOp{Op: protocol.OpOpen}, lease.RegisterOp{Op: protocol.OpPut}
	p.StartRegisterOp(p.now, &open, "", aTimeout, aTTL)
	p.StartRegisterOp(p.now, &put, "", aTimeout, aTTL)
	assert.True(t, open.Follow(p.now, true))
	assert.False(t, open.Follow(p.now, false))
	assert.True(t, put.Follow(p.now, false))
	assert.True(t, put.Over)
	assert.False(t, put.Follow(p.now.Add(protocol.LatePut+1), false))
}

// A node whose clock was set back counts its guard time again with the next
// connection.
func TestClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	p := newProcess(1)
	read := func(millis int64) []process.Action {
		p.now += 1000
		_, do := p.Time(0, nodeset.Reading{Sent: p.now - 500, Received: p.now, Micros: millis * 1000})
		return do
	}
	assert.Empty(t, read(1_000_000))
	assert.True(t, has(read(990_000), process.ActReconnect))
}

func has(do []process.Action, k process.ActionKind) bool {
	return slices.ContainsFunc(do, func(a process.Action) bool { return a.Kind == k })
}

// Nodes that have not shown their time for a while are asked for it.
func TestNodesAreAskedForTheirTime(t *testing.T) {
	t.Parallel()
	polled(t)
}

func polled(t assert.TestingT) {
	p := newProcess(3)
	p.now = p.now.Add(aTTL / 4)
	p.Time(1, nodeset.Reading{Sent: p.now - 500, Received: p.now, Micros: 1_000_000 * 1000})
	do := p.Tick(p.now)
	i := slices.IndexFunc(do, func(a process.Action) bool { return a.Kind == process.ActTime })
	if assert.GreaterOrEqual(t, i, 0) {
		assert.Equal(t, uint32(0b101), do[i].Nodes)
	}
}

// Two goroutines may carry out what two events have said in any order, so each
// time at which a Tick is wanted is said once, and again after each Tick.
func TestWakeIsSaidAgainAfterATick(t *testing.T) {
	t.Parallel()
	p := newProcess(3)
	assert.False(t, has(p.Show(p.now, 0, 1), process.ActWake))
	assert.True(t, has(p.Tick(p.now+1), process.ActWake), "also where the Tick came too early")
}

// The first reply of an incarnation begins the bounds of its node's clock, also
// when that reply is what shows the incarnation. Without that a jump between
// the first reply and the second goes unnoticed: the node has ended a lease
// that this process counts on.
func TestFirstReplyBeginsTheBounds(t *testing.T) {
	t.Parallel()
	firstReply(t)
}

func firstReply(t assert.TestingT) {
	p := newProcess(3)
	read := func(inc protocol.Incarnation, millis int64) protocol.Why {
		p.now += 1000
		r := protocol.Request{Op: protocol.OpJoin, Node: 0, Sent: p.now - 500}
		v, _ := p.Reply(p.now, &p.name, &r,
			&protocol.Answer{Status: protocol.OK, Incarnation: inc, Clock: millis * 1000})
		return v.Why
	}
	assert.Equal(t, protocol.Counts, read(1, 1_000_000))
	p.Down(p.now, 0)
	p.Connect(p.now, 0, time.Millisecond) // and no Show: the marker could not be read
	p.Up(p.now, 0)
	assert.Equal(t, protocol.Counts, read(9, 5_000_000), "the clock of another server is no jump")
	assert.Equal(t, protocol.Parted, read(9, 5_060_000), "a jump of this one is")
}

// unmet is a process that has not heard of its nodes yet.
func unmet(nodes int) *testProcess {
	return &testProcess{now: protocol.Time(time.Second), Client: process.NewClient(process.ClientConfig{
		Nodes: nodes, TTL: aTTL, NodeTimeout: aTimeout, Guard: guardTime,
	})}
}

// meet begins the connection to a node whose clock shows so many milliseconds.
func (p *testProcess) meet(node int, millis int64) {
	p.now += 1000
	p.Connect(p.now, node, time.Millisecond)
	p.Show(p.now, node, protocol.Incarnation(node+1))
	p.Time(node, nodeset.Reading{Sent: p.now - 500, Received: p.now, Micros: millis * 1000})
	p.Up(p.now, node)
}

// A connection may carry a join before Up. The clock that its node showed
// counts by then: a T0 without it is of long ago, and the node would be held to
// have a wrong clock.
func TestClockIsKnownBeforeUp(t *testing.T) {
	t.Parallel()
	p := unmet(3)
	p.Connect(p.now, 0, time.Millisecond)
	p.Show(p.now, 0, 1)
	p.Time(0, nodeset.Reading{Sent: p.now - 500, Received: p.now, Micros: 1_700_000_000_000 * 1000})
	assert.InDelta(t, int64(1_700_000_000_000_000), int64(p.Clock(p.now)), 10_000)
}
