package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// The claim of a put is lost, and a node that has forgotten the promise of a
// later run takes the put: a settle that arrived late has brought it the claim.
// That does not count. When the node has been repaired, it refuses.
func TestPutAtANodeThatForgotALaterRun(t *testing.T) {
	t.Parallel()
	lateTake(t)
}

func lateTake(t assert.TestingT) {
	for _, held := range []bool{true, false} {
		q := lease.RegisterOp{Op: protocol.OpPut, Nodes: 3, NodeTimeout: 200 * time.Millisecond,
			MaxPause: time.Second, Fresh: time.Minute}
		q.Stored.Version = protocol.Version{Ticket: 640, ID: protocol.ID{1}, Seq: 1}
		now := protocol.Time(time.Second)
		q.Start(now)
		q.Follow(now, held)
		answer := func(says ...protocol.Answer) {
			out := q.Out
			q.Out = nil
			for _, r := range out {
				q.Answer(now, r, says[r.Node])
			}
		}
		superseded := protocol.Answer{Status: protocol.StatusSuperseded, Record: &protocol.Entry{CaughtUp: true}}
		took := protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{CaughtUp: true}}
		forgot := protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{}}
		answer(took, forgot, superseded)
		if held {
			assert.Equal(t, lease.Settled, q.Outcome(), "a node that votes for the claim takes it")
			continue
		}
		assert.Equal(t, lease.Asking, q.Outcome())
		now = max(now, q.Wake())
		q.Tick(now)
		answer(took, superseded, superseded)
		assert.Equal(t, lease.Superseded, q.Outcome())
	}
}

// A node has taken the put in that way. A read does not take the value for
// recorded, as the later run has not found it, and a run that finds it records
// it again. If no later run has begun, or the node is caught up, it counts.
func TestReadOfANodeThatForgotALaterRun(t *testing.T) {
	t.Parallel()
	lateRead(t)
}

func lateRead(t assert.TestingT) {
	value := protocol.Stored{Version: protocol.Version{Ticket: 640, ID: protocol.ID{1}, Seq: 1}}
	early := protocol.Version{Ticket: 640, ID: protocol.ID{1}}
	later := protocol.Version{Ticket: 700, ID: protocol.ID{2}}
	for _, c := range []struct {
		caughtUp bool
		promise  protocol.Version
		read     lease.Outcome
		few      bool
	}{
		{false, later, lease.Inconclusive, true},
		{true, later, lease.Settled, false},
		{false, early, lease.Settled, true},
	} {
		entries := []protocol.Entry{
			{Stored: value, Promise: early, CaughtUp: true},
			{Stored: value, Promise: early, CaughtUp: c.caughtUp},
			{Promise: c.promise, CaughtUp: true},
		}
		answered := func(op protocol.Op) *lease.RegisterOp {
			q := &lease.RegisterOp{Op: op, Nodes: 3, NodeTimeout: 200 * time.Millisecond,
				MaxPause: time.Second, Fresh: time.Minute, All: true}
			q.Stored.Version = protocol.Version{Ticket: 800, ID: protocol.ID{3}}
			now := protocol.Time(time.Second)
			q.Start(now)
			for _, r := range q.Out {
				e := entries[r.Node]
				if op == protocol.OpOpen {
					e.Promise = q.Stored.Version
				}
				q.Answer(now, r, protocol.Answer{Status: protocol.OK, Record: &e})
			}
			return q
		}
		if q := answered(protocol.OpRead); c.read != lease.Settled {
			assert.Equal(t, c.read, q.Outcome())
		} else {
			// What the third node lacks is still brought to it.
			assert.Equal(t, lease.Asking, q.Outcome())
		}
		_, few := answered(protocol.OpOpen).Adopt()
		assert.Equal(t, c.few, few)
	}
}
