package protocol

import (
	"testing"
	"time"
)

// A semaphore's holder is told by one node that nobody is before it any more,
// while what it knows of the other is older, and goes by totals for what came
// first: all that it may still count fits, so it is not lost.
func TestHolderHearsOfAnEmptyQueue(t *testing.T) {
	c := NewClaim(Config{
		Terms: Terms{Weight: 1, Capacity: 3, TTL: time.Hour, Counting: true}, Nodes: 3, NodeTimeout: time.Minute, Drift: time.Second,
	})
	take := func() []Request {
		out := append([]Request(nil), c.Out...)
		c.Out = c.Out[:0]
		return out
	}
	now := Time(1)
	c.Start(now, 64<<20)
	answers := func(a ...Answer) {
		now++
		for _, r := range take() {
			if r.Node >= len(a) {
				continue // the third node is silent
			}
			a[r.Node].Status, a[r.Node].Incarnation, a[r.Node].Ticket, a[r.Node].Vote, a[r.Node].Told = OK, 1, 64<<20, true, true
			c.Answer(now, r, a[r.Node])
		}
	}
	answers(Answer{Sum: 2, Digest: 5}, Answer{Sum: 1, Digest: 9})
	if c.Phase() != Waiting {
		t.Fatalf("phase %d: two of them may count, and there is no room for a third", c.Phase())
	}
	recent := []Lower{{ID: ID{1}, Weight: 1}}
	answers(
		Answer{Sum: 2, Digest: 5, Listed: true, Lower: recent, BaseSum: 1, BaseDigest: 9},
		Answer{Sum: 1, Digest: 9, Listed: true, BaseSum: 1, BaseDigest: 9},
	)
	if c.Phase() != Holding {
		t.Fatalf("phase %d, want held: one is older than the lists, one is in them", c.Phase())
	}
	now = now.Add(c.TTL / 3)
	c.Tick(now)
	answers(Answer{})
	if c.Phase() != Holding {
		t.Fatalf("phase %d: lost, though fewer are before it than ever", c.Phase())
	}
}
