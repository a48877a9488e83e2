package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// A node takes an open, loses its data, and its guard time passes. Then it says
// that it does not vote for the claim. Its promise is gone, so it does not
// count, even if the process was stopped when it should have noticed that the
// first answer is old.
func TestOpenThatANodeHasForgotten(t *testing.T) {
	t.Parallel()
	const second = protocol.Time(time.Second)
	q := &RegisterOp{
		Op: protocol.OpOpen, Nodes: 3, NodeTimeout: time.Second,
		MaxPause: 10 * time.Second, Fresh: 100 * time.Second,
		Stored: protocol.Stored{Version: protocol.Version{Ticket: mine, ID: protocol.ID{1}}},
	}
	now := second
	q.Start(now)
	q.Answer(now, q.Out[0], protocol.Answer{Status: protocol.OK, Incarnation: 1, Record: &protocol.Entry{}})
	q.Out = q.Out[:0]
	for now < 90*second {
		now += second
		q.Tick(now)
	}
	var last protocol.Request
	for _, r := range q.Out {
		if r.Node == 0 {
			last = r
		}
	}
	now = 110 * second // nothing has run since
	q.Answer(now, last, protocol.Answer{Status: protocol.Missing, Incarnation: 2, Record: &protocol.Entry{}})
	caughtUp := &protocol.Entry{CaughtUp: true}
	q.Answer(now, protocol.Request{Node: 1, Op: protocol.OpOpen, Sent: now},
		protocol.Answer{Status: protocol.OK, Incarnation: 1, Record: caughtUp})
	q.Answer(now, protocol.Request{Node: 2, Op: protocol.OpOpen, Sent: now},
		protocol.Answer{Status: protocol.Missing, Incarnation: 1, Record: caughtUp})
	if q.Outcome() != Asking {
		t.Fatalf("outcome %d with the promise of one node of three", q.Outcome())
	}
}
