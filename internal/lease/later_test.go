package lease

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

const soon = 10 * time.Millisecond

// deferring is a claim of five nodes that leaves the last two out at first.
type deferring struct {
	*Claim
	t   *testing.T
	now protocol.Time
}

func newDeferring(t *testing.T, try bool) *deferring {
	b := &deferring{t: t, now: 1, Claim: NewClaim(Config{
		Terms: protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Hour}, Nodes: 5,
		NodeTimeout: time.Minute, Drift: time.Second, Try: try,
	})}
	b.Start(b.now, mine, 0b11000, soon)
	if b.Wake() != b.now.Add(soon) {
		t.Errorf("wants to be woken at %d, not when the others are to be asked", b.Wake())
	}
	return b
}

// asked takes what has been sent, which is to be op, to these nodes.
func (b *deferring) asked(op protocol.Op, nodes ...int) []protocol.Request {
	b.t.Helper()
	out := append([]protocol.Request(nil), b.Out...)
	b.Out = b.Out[:0]
	ok := len(out) == len(nodes)
	for i := 0; ok && i < len(out); i++ {
		ok = out[i].Op == op && out[i].Node == nodes[i] && out[i].Ticket == mine
	}
	if !ok {
		b.t.Fatalf("sent %v, want %v to %v at %d", out, op, nodes, mine)
	}
	return out
}

func (b *deferring) answer(votes bool, rs ...protocol.Request) {
	b.now++
	for _, r := range rs {
		b.Answer(b.now, r, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: r.Ticket, Vote: votes})
	}
}

func (b *deferring) is(want Phase) {
	b.t.Helper()
	if b.State.Phase() != want {
		b.t.Fatalf("phase %d, want %d", b.State.Phase(), want)
	}
}

// A lock that is given back at once has never been anywhere but at the first
// nodes.
func TestShortHoldAsksOnlyAQuorum(t *testing.T) {
	t.Parallel()
	b := newDeferring(t, false)
	b.answer(true, b.asked(protocol.OpJoin, 0, 1, 2)...)
	b.is(Holding)
	b.asked(protocol.OpJoin)
	b.Leave(b.now)
	b.asked(protocol.OpLeave, 0, 1, 2)
	for i := range 5 {
		if b.State.Untouched(i) != (i > 2) {
			t.Errorf("node %d: untouched is %v", i, b.State.Untouched(i))
		}
	}
}

// One that is kept is brought to all nodes, and from then on it makes no
// difference.
func TestKeptHoldAsksTheDeferredNodes(t *testing.T) {
	t.Parallel()
	b := newDeferring(t, false)
	b.answer(true, b.asked(protocol.OpJoin, 0, 1, 2)...)
	b.now = b.now.Add(soon)
	b.Tick(b.now)
	b.answer(true, b.asked(protocol.OpJoin, 3, 4)...)
	b.is(Holding)
	b.Tick(b.now.Add(soon))
	b.asked(protocol.OpJoin)
	b.Leave(b.now.Add(2 * soon))
	b.asked(protocol.OpLeave, 0, 1, 2, 3, 4)
}

// The others are asked as soon as the first cannot make q votes, whatever the
// reason.
func TestFirstDoNotSuffice(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(b *deferring, rs []protocol.Request){
		"another claim is first": func(b *deferring, rs []protocol.Request) { b.answer(false, rs[1]) },
		"another ticket": func(b *deferring, rs []protocol.Request) {
			b.Answer(b.now, rs[1], protocol.Answer{Status: protocol.OK, Incarnation: 1,
				Ticket: mine + protocol.Residues, Vote: true})
		},
		"recovering": func(b *deferring, rs []protocol.Request) {
			b.Answer(b.now, rs[1], protocol.Answer{Status: protocol.Recovering, Incarnation: 1, Wait: time.Hour})
		},
		"refused":        func(b *deferring, rs []protocol.Request) { b.Fail(b.now, rs[1], true) },
		"out of reach":   func(b *deferring, rs []protocol.Request) { b.Fail(b.now, rs[1], false) },
		"not well":       func(b *deferring, _ []protocol.Request) { b.MarkSlow(b.now, 1) },
		"slow to answer": func(b *deferring, _ []protocol.Request) { b.now = b.now.Add(soon); b.Tick(b.now) },
	} {
		for _, try := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b := newDeferring(t, try)
				rs := b.asked(protocol.OpJoin, 0, 1, 2)
				happens(b, rs)
				rest := b.asked(protocol.OpJoin, 3, 4)
				b.answer(true, rs[0], rs[2], rest[0])
				b.is(Holding)
			})
		}
	}
}

// A try is over only when all have had their say, or it cannot be had any more.
// One that has a vote stays for a moment: those ahead of it may not be settled
// yet.
func TestTryAsksTheDeferredNodes(t *testing.T) {
	t.Parallel()
	for no := range 3 { // which of the first three answers says so
		b := newDeferring(t, true)
		rs := b.asked(protocol.OpJoin, 0, 1, 2)
		for i := range no {
			b.answer(true, rs[i])
		}
		b.answer(false, rs[no])
		rest := b.asked(protocol.OpJoin, 3, 4)
		b.answer(false, rs[no+1:]...)
		if no > 0 {
			b.answer(false, rest[0])
		}
		if no > 1 {
			b.answer(false, rest[1])
		}
		if no > 0 {
			b.is(Waiting)
			b.now = b.now.Add(b.State.NodeTimeout)
			b.Tick(b.now)
		}
		b.is(Busy)
		b.asked(protocol.OpLeave, 0, 1, 2, 3, 4)
	}

	b := newDeferring(t, true)
	b.asked(protocol.OpJoin, 0, 1, 2)
	for i := 3; i < 5; i++ {
		b.State.peers[i].askAt = protocol.Never
	}
	b.now = b.now.Add(b.State.NodeTimeout) // none of the first has answered
	b.Tick(b.now)
	b.answer(true, b.asked(protocol.OpJoin, 3, 4)...)
	b.is(NoQuorum)
}

// A process may stand still while its try stays for a vote. When it goes on,
// its leases have lapsed, and the try is over: it must not ask to be woken at
// once, over and over.
func TestTryWhoseLeasesLapse(t *testing.T) {
	t.Parallel()
	b := newDeferring(t, true)
	rs := b.asked(protocol.OpJoin, 0, 1, 2)
	b.answer(true, rs[0])
	b.answer(false, rs[1:]...)
	b.asked(protocol.OpJoin, 3, 4) // their answers may still be votes
	b.is(Waiting)
	b.now = b.now.Add(2 * b.State.TTL)
	for range 3 {
		if b.Tick(b.now); !b.State.Phase().Final() && b.Wake() <= b.now {
			t.Fatalf("phase %d, and it wants another Tick at once", b.State.Phase())
		}
	}
}
