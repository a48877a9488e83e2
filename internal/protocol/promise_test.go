package protocol

import (
	"testing"
	"time"
)

// A node takes an open, loses its data, and its guard time passes. Then it says
// that it does not vote for the claim. Its promise is gone, so it does not
// count, even if the process was stopped when it should have noticed that the
// first answer is old.
func TestOpenThatANodeHasForgotten(t *testing.T) {
	t.Parallel()
	const second = Time(time.Second)
	q := &RegisterOp{
		Op: OpOpen, Nodes: 3, NodeTimeout: time.Second, MaxPause: 10 * time.Second, Fresh: 100 * time.Second,
		Stored: Stored{Version: Version{Ticket: mine, ID: ID{1}}},
	}
	now := second
	q.Start(now)
	q.Answer(now, q.Out[0], Answer{Status: OK, Incarnation: 1, Record: &Entry{}})
	q.Out = q.Out[:0]
	for now < 90*second {
		now += second
		q.Tick(now)
	}
	var last Request
	for _, r := range q.Out {
		if r.Node == 0 {
			last = r
		}
	}
	now = 110 * second // nothing has run since
	q.Answer(now, last, Answer{Status: Missing, Incarnation: 2, Record: &Entry{}})
	caughtUp := &Entry{CaughtUp: true}
	q.Answer(now, Request{Node: 1, Op: OpOpen, Sent: now}, Answer{Status: OK, Incarnation: 1, Record: caughtUp})
	q.Answer(now, Request{Node: 2, Op: OpOpen, Sent: now}, Answer{Status: Missing, Incarnation: 1, Record: caughtUp})
	if q.Outcome() != Asking {
		t.Fatalf("outcome %d with the promise of one node of three", q.Outcome())
	}
}
