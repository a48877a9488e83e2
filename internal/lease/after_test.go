package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// opening is an open at three nodes: x has promised, y does not vote for the
// claim and knows of no value, and z is out of reach.
type opening struct {
	*lease.RegisterOp
	now protocol.Time
}

const x, y, z = 0, 1, 2

var (
	promised = protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{CaughtUp: true}}
	// z has lost its data since, and votes again.
	promisedAnew = protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{}}
	nothing      = protocol.Answer{Status: protocol.Missing, Record: &protocol.Entry{CaughtUp: true}}
	settledSince = protocol.Answer{Status: protocol.Missing, Record: &protocol.Entry{CaughtUp: true,
		Stored: protocol.Stored{Version: protocol.Version{Ticket: 640, ID: protocol.ID{1}, Seq: 1}}}}
)

func newOpening() *opening {
	o := &opening{now: protocol.Time(time.Second), RegisterOp: &lease.RegisterOp{Op: protocol.OpOpen, Nodes: 3,
		NodeTimeout: 200 * time.Millisecond, MaxPause: time.Second, Fresh: time.Minute}}
	o.Stored.Version = protocol.Version{Ticket: 700, ID: protocol.ID{2}}
	o.Start(o.now)
	rs := o.sent()
	o.answer(rs[x], promised)
	o.answer(rs[y], nothing)
	o.Fail(o.now, rs[z], false)
	return o
}

// sent takes what has been sent, by node.
func (o *opening) sent() map[int]protocol.Request {
	rs := map[int]protocol.Request{}
	for _, r := range o.Out {
		rs[r.Node] = r
	}
	o.Out = nil
	return rs
}

func (o *opening) answer(r protocol.Request, a protocol.Answer) {
	o.now = o.now.Add(time.Millisecond)
	o.Answer(o.now, r, a)
}

// The process stands still, and its clock does not show that. Meanwhile the late
// put of an earlier run reaches y and z, and z loses its data. What y has said
// before z promises shows nothing of that put.
func TestOpenAsksAgainOnceAMajorityHasPromised(t *testing.T) {
	t.Parallel()
	openAfter(t)
}

func openAfter(t assert.TestingT) {
	o := newOpening()
	o.Up(o.now, z)
	o.answer(o.sent()[z], promisedAnew)
	assert.Equal(t, lease.Asking, o.Outcome(), "y knew of nothing before")
	rs := o.sent()
	if assert.Len(t, rs, 1) && assert.Contains(t, rs, y, "asked again at once") {
		o.answer(rs[y], settledSince)
	}
	assert.Equal(t, lease.Settled, o.Outcome())
	assert.Equal(t, settledSince.Record.Version, o.Newest().Version)
}

// The majority is gone when z loses its data once more. What y has said since
// that majority does not count for the next one.
func TestOpenAsksAgainOnceTheNextMajorityHasPromised(t *testing.T) {
	t.Parallel()
	o := newOpening()
	o.Up(o.now, z)
	o.answer(o.sent()[z], promisedAnew)
	toY := o.sent()[y]
	o.now = o.Wake()
	o.Tick(o.now)
	o.answer(o.sent()[z], protocol.Answer{Status: protocol.Recovering})
	o.answer(toY, nothing)
	assert.Equal(t, lease.Asking, o.Outcome())
	o.Up(o.now, z)
	o.answer(o.sent()[z], promisedAnew)
	assert.Equal(t, lease.Asking, o.Outcome(), "y knew of nothing before")
	o.answer(o.sent()[y], settledSince)
	assert.Equal(t, lease.Settled, o.Outcome())
	assert.Equal(t, settledSince.Record.Version, o.Newest().Version)
}

// If all nodes promise, an open asks each node once.
func TestOpenAsksEachNodeOnce(t *testing.T) {
	t.Parallel()
	for _, last := range []int{x, y, z} {
		o := &opening{now: protocol.Time(time.Second), RegisterOp: &lease.RegisterOp{Op: protocol.OpOpen, Nodes: 3,
			NodeTimeout: 200 * time.Millisecond, MaxPause: time.Second, Fresh: time.Minute}}
		o.Start(o.now)
		for node, r := range o.sent() {
			if node != last {
				o.answer(r, promised)
			}
		}
		assert.Equal(t, lease.Settled, o.Outcome())
		assert.Empty(t, o.Out)
	}
}
