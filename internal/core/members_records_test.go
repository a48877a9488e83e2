package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// The set becomes known by node 1 while a read is under way that node 0 has
// answered. Neither that read nor one that starts later counts what node 0 says
// before it is known to be a member.
func TestReadsHearWhichNodesAreOutside(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := idle(t, c)
	require.NoError(t, q.Ready(within(t)))
	for i := range 3 { // the answers are the test's
		require.NoError(t, c.Node(i).Stop())
		defer func() { assert.NoError(t, c.Node(i).Cont()) }()
	}
	s, err := q.NewSpec(Spec{Name: "name", Weight: 1, Capacity: 1, Set: &q.set})
	require.NoError(t, err)
	read := func() *registerCall {
		return q.Register(s).start(&registerCall{in: protocol.RegisterOp{Op: protocol.OpRead}})
	}
	answer := func(i *registerCall, node int) {
		i.mu.Lock()
		defer i.mu.Unlock()
		now := q.now().Add(1)
		i.in.Answer(now, protocol.Request{Node: node, Op: protocol.OpRead, Sent: now}, protocol.Answer{Status: protocol.OK, Record: &protocol.Entry{CaughtUp: true}})
	}
	before := read()
	answer(before, 0)
	set := &protocol.Configuration{Stamp: "1.0000000000000000001", Guard: q.set.Guard, Retention: q.set.Retention}
	for i, id := range []string{"a", "b", "c"} {
		set.Members = append(set.Members, protocol.Member{Identity: id, Addr: q.nodes.at(i).addr})
	}
	q.members.change(-1, func(m *protocol.Membership) {
		m.Met(1, "run", protocol.NodeSet{Phase: protocol.SetRecorded, Identity: "b", Config: set})
	})
	answer(before, 1)
	assert.Equal(t, protocol.Asking, before.outcome())
	after := read()
	answer(after, 0)
	answer(after, 1)
	assert.Equal(t, protocol.Asking, after.outcome())

	q.members.change(-1, func(m *protocol.Membership) {
		m.Met(0, "run", protocol.NodeSet{Phase: protocol.SetRecorded, Identity: "a", Config: set})
	})
	for _, i := range []*registerCall{before, after} {
		assert.Equal(t, protocol.Asking, i.outcome(), "what was said before")
		answer(i, 0)
		assert.Equal(t, protocol.Settled, i.outcome())
		i.end(ErrClosed)
	}
}
