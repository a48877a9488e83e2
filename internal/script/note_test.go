package script_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A claim keeps its note for as long as it is there, and the pushes to a claim
// with a note reach its owner, whose channel does not contain the note.
func TestNote(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	for capacity := range uint64(3) {
		t.Run(fmt.Sprint("capacity ", capacity+1), func(t *testing.T) { notedClaims(t, c, capacity+1) })
	}
}

func notedClaims(t *testing.T, c redis.UniversalClient, capacity uint64) {
	const claims = 6
	n := &node{c: c, keys: script.NewKeys("test", fmt.Sprint("noted ", capacity)).At(home),
		retention: time.Minute}
	n.serve()
	pushes := c.Subscribe(t.Context(), "owner")
	defer func() { _ = pushes.Close() }()
	_, err := pushes.Receive(t.Context())
	require.NoError(t, err)
	terms := func(i int) protocol.Terms {
		terms := n.terms(uint64(i+1), capacity)
		terms.Notify = true
		return terms
	}
	note := func(i int) string {
		if i%3 == 2 {
			return "" // others have none
		}
		return fmt.Sprintf(" order %d: 3 of 5, “late”", i)
	}
	noted := func(left int) {
		t.Helper()
		reply, err := c.Do(t.Context(), args(t, script.AppendInspect(nil, n.keys, claims, 0))...).Slice()
		require.NoError(t, err)
		q, err := script.DecodeInspect(values(t, reply))
		require.NoError(t, err)
		require.Len(t, q.Claims, claims-left)
		for i := range q.Claims {
			assert.Equal(t, "owner"+note(left+i), q.Claims[i].Owner)
		}
	}
	heard := func() protocol.Push {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		m, err := pushes.ReceiveMessage(ctx)
		require.NoError(t, err)
		p, err := script.ParsePush(m.Payload)
		require.NoError(t, err)
		return p
	}
	tickets := make([]protocol.Ticket, claims)
	for i := range claims {
		n.note = note(i)
		tickets[i] = n.do(t, terms(i), join(640)).Ticket
	}
	noted(0)
	for i := range int(capacity) {
		p := heard()
		assert.True(t, p.Waiters)
		assert.Equal(t, tickets[i], p.Ticket)
	}
	n.note = "" // a beat has no owner: the node has it
	for i := range claims {
		n.do(t, terms(i), protocol.Request{Op: protocol.OpBeat})
	}
	noted(0)
	require.NoError(t, c.Do(t.Context(), args(t, script.AppendInspect(nil, n.keys, 0, tickets[0]))...).Err())
	assert.True(t, heard().Evict)
	for i := range claims {
		n.do(t, terms(i), protocol.Request{Op: protocol.OpLeave})
		if i+int(capacity) >= claims {
			continue
		}
		noted(i + 1)
		p := heard()
		assert.True(t, p.Vote)
		assert.Equal(t, tickets[i+int(capacity)], p.Ticket)
		n.do(t, terms(i+int(capacity)), protocol.Request{Op: protocol.OpBeat})
	}
}
