package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// permit is a claim to one of three permits, of a majority of two of which two
// others may be a part: one that both nodes have had for long, and one that
// only the first knows. It holds by what the nodes have listed.
type permit struct {
	*Claim
	now protocol.Time
}

const mine = protocol.Ticket(64 << 20)

func newPermit(t *testing.T) *permit {
	c := &permit{now: 1, Claim: NewClaim(Config{
		Terms: protocol.Terms{Weight: 1, Capacity: 3, TTL: time.Hour, Counting: true}, Nodes: 3,
		NodeTimeout: time.Minute, Drift: time.Second,
	})}
	c.Start(c.now, mine, 0, 0)
	c.answers(protocol.Answer{Sum: 2, Digest: 5}, protocol.Answer{Sum: 1, Digest: 9})
	if c.State.Phase() != Waiting {
		t.Fatalf("phase %d: two of them may count, and there is no room for a third", c.State.Phase())
	}
	c.answers(
		protocol.Answer{Sum: 2, Digest: 5, Listed: true,
			Lower: []protocol.Lower{{ID: protocol.ID{1}, Weight: 1}}, BaseSum: 1, BaseDigest: 9},
		protocol.Answer{Sum: 1, Digest: 9, Listed: true, BaseSum: 1, BaseDigest: 9},
	)
	if c.State.Phase() != Holding {
		t.Fatalf("phase %d, want held: one is older than the lists, one is in them", c.State.Phase())
	}
	return c
}

// answers are those of the first nodes to what has been asked; the others are
// silent.
func (c *permit) answers(a ...protocol.Answer) {
	out := append([]protocol.Request(nil), c.Out...)
	c.Out = c.Out[:0]
	c.now++
	for _, r := range out {
		if r.Node < len(a) {
			a[r.Node].Status, a[r.Node].Incarnation, a[r.Node].Ticket, a[r.Node].Vote, a[r.Node].HasTotals = protocol.OK, 1, mine, true, true
			if a[r.Node].Listed { // and of the claims that are not lower
				a[r.Node].AllSum, a[r.Node].AllDigest = a[r.Node].Sum+1, a[r.Node].Digest+uint64(c.now)<<8
			}
			c.Answer(c.now, r, a[r.Node])
		}
	}
}

// A holder of three permits gives two back, and only one node has heard of it.
// Claims only get lighter, so that node is right, whichever of the two lists is
// read first: one permit is in use, and there is room for one more of three.
func TestAListThatIsNewerCounts(t *testing.T) {
	t.Parallel()
	for _, weights := range [][2]uint64{{3, 1}, {1, 3}} {
		c := &permit{now: 1, Claim: NewClaim(Config{
			Terms: protocol.Terms{Weight: 1, Capacity: 3, TTL: time.Hour, Counting: true}, Nodes: 3,
			NodeTimeout: time.Minute, Drift: time.Second,
		})}
		c.Start(c.now, mine, 0, 0)
		totals, lists := make([]protocol.Answer, 2), make([]protocol.Answer, 2)
		for i, w := range weights {
			totals[i] = protocol.Answer{Sum: w, Digest: 4 + w}
			lists[i] = protocol.Answer{Sum: w, Digest: 4 + w, Listed: true,
				Lower: []protocol.Lower{{ID: protocol.ID{1}, Weight: w}}}
		}
		c.answers(totals...)
		if c.State.Phase() != Waiting {
			t.Fatalf("phase %d: by the totals four permits may be in use", c.State.Phase())
		}
		c.answers(lists...)
		if c.State.Phase() != Holding {
			t.Errorf("phase %d with lists of %v: one permit is in use", c.State.Phase(), weights)
		}
	}
}

// A semaphore's holder hears from one node first how that has gone on, and what
// it hears does not compare with what the other has told: it is not lost.
func TestHolderHearsOfOneNodeFirst(t *testing.T) {
	t.Parallel()
	for name, news := range map[string]protocol.Answer{
		"no claim is left": {},
		"a list that begins elsewhere": {
			Sum: 2, Digest: 5, Listed: true, Lower: []protocol.Lower{{ID: protocol.ID{1}, Weight: 1},
				{ID: protocol.ID{2}, Weight: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newPermit(t)
			c.now = c.now.Add(c.State.TTL / 3)
			c.Tick(c.now)
			c.answers(news)
			if c.State.Phase() != Holding {
				t.Fatalf("phase %d: lost, though no more are before it than ever", c.State.Phase())
			}
			if got := len(c.State.peers[0].extra().lower); got != len(news.Lower) {
				t.Fatalf("%d claims are listed, want what the node has said", got)
			}
			// And the other has come back without its memory: what it told
			// still counts.
			c.now++
			c.Answer(c.now, protocol.Request{Node: 1, Op: protocol.OpBeat, Ticket: mine, Sent: c.now},
				protocol.Answer{Status: protocol.Recovering, Incarnation: 2, Wait: c.State.TTL})
			if c.State.Phase() != Holding {
				t.Fatalf("phase %d: lost with the memory of a node whose lease runs", c.State.Phase())
			}
		})
	}
}
