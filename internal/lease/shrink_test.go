package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
)

// A holder gives back a part of its weight while a node is within its guard
// time. The node votes again before the holder's lease there ends: another
// client has shown a longer guard time, which ends soon. The node learns the
// new weight nevertheless.
func TestNodeThatRecoversLearnsTheNewWeight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Claim = lease.NewClaim(lease.Config{
		Terms: protocol.Terms{ID: protocol.ID{3: 1}, Weight: 4, Capacity: 4, TTL: benchTTL},
		Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond,
	})
	b.nodes[0] = model.New(2 * benchTTL)
	b.nodes[0].Mark(b.millis(), 1)
	b.other(0, protocol.OpJoin, 64)
	b.other(0, protocol.OpLeave, 0)
	b.now = b.now.Add(2 * benchTTL)

	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1, 2)
	assert.Equal(t, lease.Holding, b.State.Phase())
	b.nodes[0].Configure(2*benchTTL+benchTTL/4, 0)
	b.Shrink(b.now, 1)
	b.reach(0, 1, 2)
	assert.Equal(t, protocol.Recovering, b.last[0].Status)
	b.pass(benchTTL, 0, 1, 2)
	assert.Equal(t, protocol.OK, b.last[0].Status)
	for i, n := range b.nodes {
		if c := n.Name("").Claims(b.millis()); assert.Len(t, c, 1, "node %d", i) {
			assert.EqualValues(t, 1, c[0].Weight, "at node %d", i)
		}
	}
}

// A hold that is not renewed gives back a part. Each node learns it, also one
// that is silent at first, and the hold ends when it would have ended. Only a
// renewal that is asked for makes that later.
func TestShrinkMovesNoDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Claim = lease.NewClaim(lease.Config{
		Terms: protocol.Terms{ID: protocol.ID{3: 1}, Weight: 4, Capacity: 4, TTL: benchTTL, Counting: true},
		Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond,
	})
	weights := func() (all []uint64) {
		for _, n := range b.nodes {
			for _, c := range n.Name("").Claims(b.millis()) {
				all = append(all, c.Weight)
			}
		}
		return all
	}
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1, 2)
	b.State.StopRenewal()
	ends := b.Deadline()
	b.pass(benchTTL/4, 0, 1, 2)
	assert.Equal(t, []uint64{4, 4, 4}, weights())

	b.Shrink(b.now, 3)
	b.reach(0, 1)
	assert.Equal(t, []uint64{3, 3, 4}, weights())
	assert.Equal(t, ends, b.Deadline())
	b.pass(benchTTL/4, 0, 1) // the third is asked again
	b.held = nil
	b.pass(benchTTL/4, 0, 1, 2)
	assert.Equal(t, []uint64{3, 3, 3}, weights())
	assert.Equal(t, ends, b.Deadline())

	b.Renew(b.now)
	b.reach(0, 1, 2)
	later := b.Deadline()
	assert.Greater(t, later, ends)
	b.Shrink(b.now.Add(time.Millisecond), 1)
	b.reach(0, 1, 2)
	assert.Equal(t, []uint64{1, 1, 1}, weights())
	assert.Equal(t, later, b.Deadline())
	b.pass(benchTTL, 0, 1, 2)
	assert.Equal(t, lease.Lost, b.State.Phase())
	assert.Equal(t, later, b.Deadline())
}

// Two parts are given back before the nodes have answered the first.
func TestTwoShrinksMoveNoDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Claim = lease.NewClaim(lease.Config{
		Terms: protocol.Terms{ID: protocol.ID{3: 1}, Weight: 4, Capacity: 4, TTL: benchTTL, Counting: true},
		Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond,
	})
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1, 2)
	b.State.StopRenewal()
	ends := b.Deadline()
	b.pass(benchTTL/4, 0, 1, 2)
	b.Shrink(b.now, 3)
	b.now = b.now.Add(time.Millisecond)
	b.Shrink(b.now, 2)
	b.reach(0, 1, 2)
	assert.Equal(t, ends, b.Deadline())
}

// What a node gave before a part was given back still counts, when a renewal
// that is asked for reaches another one.
func TestShrinkTakesNoLeaseBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Claim = lease.NewClaim(lease.Config{
		Terms: protocol.Terms{ID: protocol.ID{3: 1}, Weight: 4, Capacity: 4, TTL: benchTTL},
		Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond,
	})
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1, 2)
	b.State.StopRenewal()
	ends := b.Deadline()
	b.now = b.now.Add(10 * time.Millisecond)
	b.Renew(b.now)
	b.reach(2)
	b.held = nil
	assert.Equal(t, ends, b.Deadline(), "one node is no quorum")
	b.now = b.now.Add(60 * time.Millisecond)
	b.Shrink(b.now, 1)
	b.reach(0, 1, 2)
	assert.Equal(t, ends, b.Deadline())
	b.now = b.now.Add(10 * time.Millisecond)
	b.Renew(b.now)
	b.reach(0)
	assert.Equal(t, ends.Add(10*time.Millisecond), b.Deadline(), "the lease of the third node")
}

// A renewal that is asked for counts whole at a node that had the claim at a
// lower ticket, or not at all.
func TestAskedRenewalOfAHoldThatIsNotRenewed(t *testing.T) {
	t.Parallel()
	for _, shrinks := range []bool{false, true} {
		b := newBench(t)
		b.Claim = lease.NewClaim(lease.Config{
			Terms: protocol.Terms{ID: protocol.ID{3: 1}, Weight: 4, Capacity: 4, TTL: benchTTL},
			Nodes: 3, NodeTimeout: 50 * time.Millisecond, Drift: 12 * time.Millisecond,
		})
		for i := range 2 {
			b.other(i, protocol.OpJoin, 256)
			b.other(i, protocol.OpLeave, 0)
		}
		b.Start(b.now, 128, 0, 0)
		if !shrinks {
			b.out()
			join := b.held[2]
			b.held = b.held[:2]
			a, _ := b.nodes[2].Name("").Handle(b.millis(), b.State.Terms, "", join)
			b.Answer(b.now, join, a)
		}
		b.reach(0, 1)
		assert.Equal(t, lease.Holding, b.State.Phase())
		assert.Greater(t, b.State.Ticket(), protocol.Ticket(128))
		b.held = nil
		b.State.StopRenewal()
		if shrinks {
			b.Shrink(b.now, 1)
			b.reach(0, 1)
		}
		ends := b.Deadline()
		b.now = b.now.Add(60 * time.Millisecond)
		b.Renew(b.now)
		b.reach(0, 2)
		assert.Equal(t, ends.Add(60*time.Millisecond), b.Deadline(), "a part was given back: %v", shrinks)
	}
}
