package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

// bench is one claim at three reference nodes. The test decides which message
// arrives, and when. Clocks agree, and messages take no time.
type bench struct {
	*lease.Claim
	t     *testing.T
	now   protocol.Time
	nodes []*model.Node
	held  []protocol.Request // requests that have not arrived yet
	last  []protocol.Answer  // the newest answer of each node
}

const benchTTL = time.Second

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: protocol.Time(time.Hour), last: make([]protocol.Answer, 3)}
	for i := range 3 {
		n := model.New(2 * benchTTL)
		n.Bootstrap(0, protocol.Incarnation(i+1))
		b.nodes = append(b.nodes, n)
	}
	b.Claim = lease.NewClaim(lease.Config{
		Terms: terms(protocol.ID{3: 1}), Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond,
	})
	return b
}

func terms(id protocol.ID) protocol.Terms {
	return protocol.Terms{ID: id, Weight: 1, Capacity: 1, TTL: benchTTL}
}

func (b *bench) millis() int64 { return int64(b.now) / int64(time.Millisecond) }

// other has another claim's request arrive at a node, and returns what that
// pushes.
func (b *bench) other(node int, op protocol.Op, t protocol.Ticket) []model.Out {
	_, outs := b.nodes[node].Name("").Handle(b.millis(), terms(protocol.ID{3: 2}), "other",
		protocol.Request{Op: op, Ticket: t})
	return outs
}

// out takes what the claim wants to send.
func (b *bench) out() { b.held, b.Out = append(b.held, b.Out...), b.Out[:0] }

// reach has the requests to these nodes arrive, and the answers as well, until
// there are no more. The other requests wait.
func (b *bench) reach(nodes ...int) {
	for b.out(); len(b.held) > 0; b.out() {
		rest := b.held[:0:0]
		some := false
		for _, r := range b.held {
			reached := false
			for _, z := range nodes {
				reached = reached || r.Node == z
			}
			if !reached {
				rest = append(rest, r)
				continue
			}
			some = true
			a, _ := b.nodes[r.Node].Name("").Handle(b.millis(), b.State.Terms, "", r)
			b.last[r.Node] = a
			b.Answer(b.now, r, a)
		}
		if b.held = rest; !some {
			return
		}
	}
}

// pass lets time pass. The claim is awake all the while, and reaches these
// nodes.
func (b *bench) pass(d time.Duration, nodes ...int) {
	for end := b.now.Add(d); b.now < end; b.now = b.now.Add(time.Millisecond) {
		if b.Wake() <= b.now {
			b.Tick(b.now)
		}
		b.reach(nodes...)
	}
}

// behind is a claim that waits behind another one at the nodes 0 and 1, and has
// not reached node 2. The other claim leaves node 0 and node 2: node 0 votes,
// and pushes, but the push does not arrive.
func behind(t *testing.T) (b *bench, push protocol.Push) {
	b = newBench(t)
	for z := range 3 {
		b.other(z, protocol.OpJoin, 64)
	}
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1)
	assert.Equal(t, lease.Waiting, b.State.Phase())
	outs := b.other(0, protocol.OpLeave, 0)
	b.other(2, protocol.OpLeave, 0)
	if !assert.Len(t, outs, 1) {
		t.FailNow()
	}
	push = outs[0].Push
	assert.True(t, push.Vote)
	return b, push
}

// A push may arrive when the vote is gone. The claim's lease at node 0 ends
// while the push is under way. Another Redlock client takes the redlock key of
// the nodes 0 and 2. The claim comes back at node 0, with the ticket that it
// had, and without a vote. The push names that ticket and that incarnation.
func TestPushOfAVoteThatIsGone(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]bool{"after the answer": true, "before the answer": false} {
		t.Run(name, func(t *testing.T) {
			b, push := behind(t)
			b.pass(benchTTL/2, 1)
			assert.True(t, b.nodes[2].Name("").Redlock.Set(b.millis(), "rival", 10*time.Second))
			b.pass(benchTTL/4, 1, 2) // it is known at node 2, too: else it would start again
			b.other(1, protocol.OpBeat, 0)
			b.pass(benchTTL/2, 1, 2)
			assert.True(t, b.nodes[0].Name("").Redlock.Set(b.millis(), "rival", 10*time.Second),
				"the lease at node 0 has ended")
			b.other(0, protocol.OpBeat, 0) // not patient: it drops the claim
			if answered {
				b.Up(b.now, 0)
				b.reach(0, 1, 2)
				assert.True(t, b.last[0].Foreign, "%+v", b.last[0])
				assert.Equal(t, push.Ticket, b.last[0].Ticket)
				b.Push(b.now, 0, push)
			} else {
				// The push arrives between the answer that the claim is missing
				// and the one that it is back.
				b.Up(b.now, 0)
				b.out()
				r := b.held[len(b.held)-1]
				b.held = b.held[:len(b.held)-1]
				a, _ := b.nodes[0].Name("").Handle(b.millis(), b.State.Terms, "", r)
				assert.Equal(t, protocol.Missing, a.Status)
				b.Answer(b.now, r, a)
				b.Push(b.now, 0, push)
			}
			b.reach(0, 1, 2)
			b.other(1, protocol.OpLeave, 0)
			b.Up(b.now, 1)
			b.reach(0, 1, 2)
			assert.Equal(t, 1, b.State.Votes(b.now), "node 1 votes")
			assert.Equal(t, lease.Waiting, b.State.Phase(), "the rival has the keys of the nodes 0 and 2")

			// The push is worth a question, and when the rival has gone the
			// answer is worth a vote.
			b.nodes[0].Name("").Redlock.Delete(b.millis(), "rival")
			b.Push(b.now, 0, push)
			b.reach(0, 1, 2)
			assert.Equal(t, lease.Holding, b.State.Phase())
		})
	}
}

// The redlock key may be another client's though the claim's lease has not
// ended: an operator has removed it, or it ended a moment before the claim.
func TestPushBeforeTheKeyWasTaken(t *testing.T) {
	t.Parallel()
	b, push := behind(t)
	assert.True(t, b.nodes[0].Name("").Redlock.Delete(b.millis(), ""))
	assert.True(t, b.nodes[0].Name("").Redlock.Set(b.millis(), "rival", 10*time.Second))
	b.Up(b.now, 0)
	b.reach(0, 1)
	assert.True(t, b.last[0].Foreign, "%+v", b.last[0])
	b.Push(b.now, 0, push)
	b.reach(0, 1)
	assert.Zero(t, b.State.Votes(b.now))
}

// A node may store the claim a second time and not vote for it, with no word of
// another client: it has kept the fence for the retention time, and has since
// given lower tickets. What it pushed before does not count.
func TestPushBeforeTheSecondSettle(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"after the answer": false, "before the answer": true} {
		t.Run(name, func(t *testing.T) {
			b, push := behind(t)
			b.pass(benchTTL/4, 1, 2) // node 2 votes
			b.out()
			b.held = nil
			b.Answer(b.now, protocol.Request{Node: 0, Op: protocol.OpBeat, Sent: b.now},
				protocol.Answer{Status: protocol.Missing, Incarnation: 1, Clock: 1})
			if assert.Len(t, b.Out, 1); b.Out[0].Op != protocol.OpSettle {
				t.Fatalf("%v, want a settle", b.Out)
			}
			r := b.Out[0]
			b.Out = nil
			if early {
				b.Push(b.now, 0, push)
			}
			b.Answer(b.now, r, protocol.Answer{Status: protocol.OK, Incarnation: 1, Ticket: r.Ticket})
			if !early {
				b.Push(b.now, 0, push)
			}
			assert.Equal(t, lease.Waiting, b.State.Phase())
			if assert.Len(t, b.Out, 1) {
				assert.Equal(t, protocol.OpBeat, b.Out[0].Op, "the push may be of now: the node is asked")
			}
		})
	}
}

// A word does not outlast the lease that the node has given: an eviction that
// was broken off, and the silence of that node, add up to nothing.
func TestEvictByAWordOfBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	word := func(node int) protocol.Push {
		return protocol.Push{ID: b.State.ID, Incarnation: protocol.Incarnation(node + 1), Ticket: 128, Evict: true}
	}
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1, 2)
	b.Push(b.now, 0, word(0))
	b.pass(2*benchTTL, 1, 2)
	b.Push(b.now, 1, word(1))
	assert.Equal(t, lease.Holding, b.State.Phase(), "node 0 has said nothing for two leases")
	b.Push(b.now, 2, word(2))
	assert.Equal(t, lease.Lost, b.State.Phase())
}

// A claim that waits is not evicted, whatever the nodes say.
func TestEvictOfAWaiter(t *testing.T) {
	t.Parallel()
	b, _ := behind(t)
	for node := range 3 {
		b.Push(b.now, node, protocol.Push{ID: b.State.ID, Incarnation: protocol.Incarnation(node + 1),
			Ticket: b.State.Ticket(), Evict: true})
	}
	assert.Equal(t, lease.Waiting, b.State.Phase())
}

// An operator's word ends a hold when a quorum says it, each node in the view
// that it has given last, and since its last answer. It ends no wait.
func TestEvict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Start(b.now, 128, 0, 0)
	word := func(node int) protocol.Push {
		return protocol.Push{ID: b.State.ID, Incarnation: protocol.Incarnation(node + 1), Ticket: 128, Evict: true}
	}
	b.Push(b.now, 0, word(0))
	b.Push(b.now, 1, word(1))
	b.reach(0, 1, 2)
	assert.Equal(t, lease.Holding, b.State.Phase(), "it was not a holder yet")
	for range 3 {
		b.Push(b.now, 0, word(0))
	}
	other, earlier, life := word(1), word(1), word(1)
	other.ID[3], earlier.Ticket, life.Incarnation = 9, 64, 9
	for _, m := range []protocol.Push{other, earlier, life} {
		b.Push(b.now, 1, m)
	}
	assert.Equal(t, lease.Holding, b.State.Phase(), "one node has said so")
	b.Renew(b.now)
	b.reach(0, 1, 2)
	b.Push(b.now, 1, word(1))
	assert.Equal(t, lease.Holding, b.State.Phase(), "node 0 has answered since")
	assert.False(t, b.State.Evicted())
	b.Push(b.now, 2, word(2))
	assert.Equal(t, lease.Lost, b.State.Phase())
	assert.True(t, b.State.Evicted())
	assert.Equal(t, b.now, b.Deadline())
	if b.out(); assert.Len(t, b.held, 3) {
		assert.Equal(t, protocol.OpLeave, b.held[0].Op)
	}
}
