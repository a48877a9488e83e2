package process_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client gets to know nodes in addition to those of its list, and what is
// under way asks them.
func TestAClientGrows(t *testing.T) {
	t.Parallel()
	p := newProcess(3)
	p.start()
	read := &lease.RegisterOp{Op: protocol.OpRead}
	p.StartRegisterOp(p.now, read, "", aTimeout, aTTL)
	require.Len(t, p.sent, 3)
	require.Len(t, read.Out, 3)
	p.sent, read.Out = nil, nil

	g := protocol.Group{Nodes: 4, Sets: protocol.Quorums{Present: 0b0111, Next: 0b1011}}
	p.Regroup(p.now, g)
	p.a.Regroup(p.now, g)
	read.Regroup(p.now, g)
	p.flush()
	p.Connect(p.now, 3, time.Millisecond)
	p.Show(p.now, 3, 4)
	p.Up(p.now, 3)
	p.a.Up(p.now, 3)
	p.flush()
	assert.Equal(t, protocol.Incarnation(4), p.Voting(3))
	require.Len(t, read.Out, 1)
	assert.Equal(t, 3, read.Out[0].Node)
	require.Len(t, p.sent, 1)
	assert.Equal(t, 3, p.sent[0].Node)
}

// The register of what follows counts the nodes that stay or leave. What is
// under way there ends when another configuration counts.
func TestASuccessionCountsTheDeciders(t *testing.T) {
	t.Parallel()
	p := newProcess(4)
	g := protocol.Group{Nodes: 4, Sets: protocol.Quorums{Present: 0b0111, Next: 0b1001},
		Deciders: protocol.Majority(3), Window: protocol.WindowOf(guardTime)}
	p.Regroup(p.now, g)
	put := &lease.RegisterOp{Op: protocol.OpPut, Succession: true}
	p.StartRegisterOp(p.now, put, "", aTimeout, aTTL)
	require.Len(t, put.Out, 3, "the node that enters is not asked")
	for _, r := range put.Out[:2] {
		put.Answer(p.now, r, protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{CaughtUp: true}})
	}
	assert.Equal(t, lease.Settled, put.Outcome(), "though no quorum of the new set has it")

	open := &lease.RegisterOp{Op: protocol.OpOpen, Succession: true}
	p.StartRegisterOp(p.now, open, "", aTimeout, aTTL)
	open.Regroup(p.now, g)
	assert.Equal(t, lease.Superseded, open.Outcome())

	var a process.Attempt
	p.begin(&a, &process.Name{}, true)
	assert.Equal(t, lease.Joining, a.State.Phase())
	a.Regroup(p.now, g)
	assert.Equal(t, lease.Lost, a.State.Phase())
}

// An operator's step may begin when its client counts on the next configuration
// already. The nodes of that one may all lack the register.
func TestASuccessionOfAnEarlierConfiguration(t *testing.T) {
	t.Parallel()
	p := newProcess(3)
	p.Regroup(p.now, protocol.Group{Nodes: 3, Sets: protocol.Majority(3), Deciders: protocol.Majority(3),
		Successor: "quorate set 4", Window: protocol.WindowOf(guardTime)})
	for name, want := range map[string]struct {
		phase   lease.Phase
		outcome lease.Outcome
		sent    int
	}{"quorate set 3": {lease.Lost, lease.Superseded, 0}, "quorate set 4": {lease.Joining, lease.Asking, 3}} {
		var a process.Attempt
		p.begin(&a, &process.Name{Name: name}, true)
		assert.Equal(t, want.phase, a.State.Phase(), name)
		assert.Len(t, a.Out, want.sent, name)
		read := &lease.RegisterOp{Op: protocol.OpRead, Succession: true}
		p.StartRegisterOp(p.now, read, name, aTimeout, aTTL)
		assert.Equal(t, want.outcome, read.Outcome(), name)
		assert.Len(t, read.Out, want.sent, name)
	}
}

// A node that entered the set may have left it before this client counted on
// it.
func TestANodeThatLeavesBeforeItIsKnown(t *testing.T) {
	t.Parallel()
	p := newProcess(3)
	p.Down(p.now, 5)
}
