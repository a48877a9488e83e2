package process_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
)

// An attempt that starts before any node's clock is known gets its T0 when it
// is first sent, and keeps it.
func TestT0BeforeAnyClockIsKnown(t *testing.T) {
	t.Parallel()
	p := unmet(3)
	p.begin(&p.a, &p.name, false)
	// offer hands over what is to be sent, and returns what the connected
	// node gets, if there is one.
	offer := func(connected int) (sent protocol.Request) {
		send, _ := p.Step(p.now, &p.a, &p.name)
		for _, r := range send {
			if r.Node == connected {
				p.a.Sent(&r, true)
				sent = r
				continue
			}
			p.a.Sent(&r, false)
			defer p.a.Fail(p.now, &r, false)
		}
		return sent
	}
	offer(-1)
	p.now = p.now.Add(time.Second)
	for i := range 3 {
		p.meet(i, 1_700_000_000_000+int64(i)*1000)
		p.a.Up(p.now, i)
		r := offer(i)
		assert.Equal(t, protocol.OpJoin, r.Op)
		assert.InDelta(t, int64(1_700_000_000_000_000), int64(r.Ticket), 10_000,
			"node %d gets the T0 of the first", i)
	}
	assert.InDelta(t, int64(1_700_000_001_000_000), int64(p.Clock(p.now)), 10_000, "the median")
}

// The first node that a client meets has a wrong clock. An attempt with a T0 by
// that clock starts again as soon as others contradict it.
func TestT0OfAWrongClock(t *testing.T) {
	t.Parallel()
	for _, off := range []int64{-3_600_000, 3_600_000} {
		p := unmet(3)
		p.meet(0, 1_700_000_000_000+off)
		p.start()
		p.meet(1, 1_700_000_000_000)
		p.meet(2, 1_700_000_000_000)
		a := protocol.Answer{Status: protocol.OK, Incarnation: 2,
			Clock: 1_700_000_000_000_000, Ticket: p.a.State.Ticket()}
		if off > 0 {
			a.Status = protocol.Ahead
		}
		r := p.sent[1]
		v, _ := p.Reply(p.now, &p.name, &r, &a)
		p.Answer(p.now, &p.a, &p.name, &r, &a, v)
		assert.Equal(t, lease.Expired, p.a.State.Phase())
		p.a = process.Attempt{}
		p.start()
		assert.InDelta(t, int64(1_700_000_000_000_000), int64(p.a.State.Ticket()), 10_000)
	}
}
