package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// clashing has a claim of another capacity join node 2.
func (b *bench) clashing() {
	other := terms(protocol.ID{3: 2})
	other.Capacity = 3
	b.nodes[2].Name("").Handle(b.millis(), other, "other", protocol.Request{Op: protocol.OpJoin, Ticket: 64})
}

// breaks has the requests to node 2 that have not arrived yet be lost.
func (b *bench) breaks() {
	b.out()
	for _, r := range b.held {
		b.Fail(b.now, r, false)
	}
	b.held = nil
}

// A hold rests on a bare majority while a node answers and does not vote for
// it, whatever the reason. A node that says nothing is no reason: a restart of
// another one ends the hold then, and Check shows that a node is down.
func TestBare(t *testing.T) {
	t.Parallel()
	bare(t)
}

func bare(t assert.TestingT) {
	const two = uint32(0b011)
	b := newBench(nil)
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1, 2)
	assert.Zero(t, b.State.Bare(b.now), "all vote")
	b.pass(2*benchTTL, 0, 1)
	assert.Zero(t, b.State.Bare(b.now), "node 2 is silent")
	assert.Equal(t, lease.Holding, b.State.Phase())
	b.Leave(b.now)
	assert.Zero(t, b.State.Bare(b.now), "it is not held")

	b = newBench(nil)
	b.other(2, protocol.OpJoin, 64)
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1, 2)
	assert.Equal(t, two, b.State.Bare(b.now), "another claim is ahead at node 2")
	b.other(2, protocol.OpLeave, 0)
	b.pass(benchTTL, 0, 1, 2)
	assert.Zero(t, b.State.Bare(b.now), "it has left")

	b = newBench(nil)
	b.clashing()
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1, 2)
	assert.Equal(t, two, b.State.Bare(b.now), "node 2 has a claim of another capacity")
}

// A holder gets the vote of a node that has a dead claim of another capacity,
// though its join there was lost and a settle is patient. Without that it keeps
// a bare majority until the fence of that claim is forgotten.
func TestADeadClaimOfAnotherCapacity(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.clashing()
	b.now = b.now.Add(2 * benchTTL)
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1)
	assert.Equal(t, lease.Holding, b.State.Phase())
	b.breaks() // the connection to node 2, with the join
	b.pass(2*benchTTL, 0, 1, 2)
	assert.Equal(t, lease.Holding, b.State.Phase())
	assert.True(t, b.last[2].Vote, "%+v", b.last[2])
	assert.Zero(t, b.State.Bare(b.now))

	// While the other claim lives the node refuses, and is asked with each beat.
	b = newBench(t)
	b.clashing()
	b.Start(b.now, 128, 0, 0)
	b.reach(0, 1)
	b.breaks()
	b.pass(benchTTL-100*time.Millisecond, 0, 1, 2)
	assert.Equal(t, protocol.Clash, b.last[2].Status)
	b.pass(benchTTL, 0, 1, 2)
	assert.True(t, b.last[2].Vote, "its lease has ended: %+v", b.last[2])
}
