package core

import (
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A client that has met other claims at a name asks all nodes the next time,
// even if all are readers, until its claim is alone there.
func TestContendedNameAsksAllNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	reader := func(q *Quorum) *Spec {
		s, err := q.NewSpec(Spec{Name: "m", Weight: 1, Capacity: 1 << 30, ShortHold: true, Set: &q.Set})
		require.NoError(t, err)
		return s
	}
	here, there := idle(t, c), idle(t, c)
	one, two := reader(here), reader(there)
	h1, err := here.Acquire(t.Context(), one, false, nil)
	require.NoError(t, err)
	assert.True(t, one.quiet())
	h2, err := there.Acquire(t.Context(), two, false, nil)
	require.NoError(t, err)
	settled := func(h Hold) { // all its joins have been answered
		require.Eventually(t, func() bool {
			a := h.a
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.claim.State.Votes(a.q.Now()) == c.Len()
		}, 10*time.Second, time.Millisecond)
	}
	settled(h2)
	assert.False(t, two.quiet())
	for _, h := range []Hold{h1, h2} { // not only a quorum
		h.Release()
		require.Eventually(t, func() bool {
			a := h.a
			a.mu.Lock()
			defer a.mu.Unlock()
			free, _ := a.claim.Free()
			return bits.OnesCount32(free) == c.Len()
		}, 10*time.Second, time.Millisecond)
	}
	h2, err = there.Acquire(t.Context(), two, false, nil)
	require.NoError(t, err)
	settled(h2)
	assert.True(t, two.quiet())

	// The nodes that are asked last do not know the claims that the first nodes
	// know.
	a := h2.a
	for _, sum := range []int64{1, 0} {
		r := protocol.Request{Op: protocol.OpJoin, Ticket: a.claim.State.Ticket(), Sent: there.Now()}
		k := calls.Get().(*call)
		k.a, k.req = a, r
		inc := int64(there.Driver.Client.Voting(0))
		k.Reply([]resp.Value{{Int: time.Now().UnixMilli()*8 + 1}, {Int: inc}, {Int: int64(r.Ticket)}, {Int: 1 | 8},
			{}, {Int: sum}, {Int: sum}}, nil)
		assert.False(t, two.quiet(), "the sum of others is %d", sum)
	}
}
