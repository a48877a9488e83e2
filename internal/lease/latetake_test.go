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
