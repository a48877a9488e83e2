package script_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Inspect tells the queue in both of its forms, and changes nothing.
func TestInspect(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 0 run 0", 0).Err())
	inspect := func(most int) script.Queue {
		t.Helper()
		before := dump(t, n)
		reply, err := c.Do(t.Context(), args(t, script.AppendInspect(nil, n.keys, most, 0))...).Slice()
		require.NoError(t, err)
		q, err := script.DecodeInspect(values(t, reply))
		require.NoError(t, err)
		assert.Equal(t, before, dump(t, n))
		return q
	}
	free := inspect(9)
	assert.Greater(t, free.Memory, 24*time.Hour, "it was bootstrapped")
	assert.Equal(t, script.Queue{Memory: free.Memory}, free)

	first, second := n.terms(1, 1), n.terms(2, 1)
	a := n.do(t, first, join(640))
	q := inspect(9)
	require.Len(t, q.Claims, 1)
	assert.Equal(t, first.ID.String(), q.Claims[0].ID)
	assert.Equal(t, a.Ticket, q.Claims[0].Ticket)
	assert.Equal(t, a.Ticket, q.Fence)
	assert.True(t, q.Claims[0].Voted)
	assert.Equal(t, [2]int{1, 1}, [2]int{int(q.Capacity), q.Voted})
	assert.Positive(t, q.Claims[0].Left)

	b := n.do(t, second, join(6400))
	q = inspect(9)
	require.Len(t, q.Claims, 2)
	assert.Equal(t, second.ID.String(), q.Claims[1].ID)
	assert.Equal(t, b.Ticket, q.Claims[1].Ticket)
	assert.Equal(t, uint64(1), q.Claims[1].Weight)
	assert.False(t, q.Claims[1].Voted)
	assert.Equal(t, [2]int{1, 1}, [2]int{int(q.Capacity), q.Voted})
	assert.Equal(t, 2, inspect(1).Queued)
	assert.Len(t, inspect(1).Claims, 1)

	// An eviction is pushed to the owner of the claim with that ticket.
	evict := func(ticket protocol.Ticket) script.Evicted {
		t.Helper()
		before := dump(t, n)
		reply, err := c.Do(t.Context(), args(t, script.AppendInspect(nil, n.keys, 0, ticket))...).Slice()
		require.NoError(t, err)
		q, err := script.DecodeInspect(values(t, reply))
		require.NoError(t, err)
		assert.Equal(t, before, dump(t, n))
		assert.Equal(t, 2, q.Queued)
		return q.Evicted
	}
	assert.Zero(t, evict(1))
	e := evict(b.Ticket)
	assert.Positive(t, e.Left)
	assert.False(t, e.Voted)
	e = evict(a.Ticket)
	assert.Equal(t, script.Evicted{Left: e.Left, Voted: true}, e, "no client listens")
	pubsub := c.Subscribe(t.Context(), "owner")
	defer pubsub.Close()
	_, err := pubsub.Receive(t.Context())
	require.NoError(t, err)
	e = evict(a.Ticket)
	assert.Equal(t, script.Evicted{Left: e.Left, Voted: true, Heard: 1}, e)
	m := <-pubsub.Channel()
	p, err := script.ParsePush(m.Payload)
	require.NoError(t, err)
	assert.Equal(t, protocol.Push{ID: first.ID, Incarnation: 7, Clock: p.Clock, Ticket: a.Ticket, Evict: true},
		p)

	n.do(t, first, protocol.Request{Op: protocol.OpLeave})
	n.do(t, second, protocol.Request{Op: protocol.OpLeave})
	assert.Empty(t, inspect(9).Claims)
	require.NoError(t, c.Set(t.Context(), n.keys.Plain(), "another client's", time.Minute).Err())
	assert.Positive(t, inspect(9).Foreign)
	born := func(ago time.Duration, guard int) {
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(),
			fmt.Sprint("7 ", time.Now().Add(-ago).UnixMilli(), " run ", guard), 0).Err())
	}
	born(-time.Hour, 0)
	assert.Zero(t, inspect(9).Memory, "its clock was set back")
	born(time.Second, 900)
	assert.InDelta(t, time.Second, inspect(9).Memory, float64(time.Second)/2)
	born(time.Second, 60000)
	assert.Zero(t, inspect(9).Memory, "its guard time is not over")
	require.NoError(t, c.Del(t.Context(), n.keys.Marker()).Err())
	assert.ErrorContains(t, c.Do(t.Context(), args(t, script.AppendInspect(nil, n.keys, 1, 0))...).Err(),
		script.OtherSet)
}

func TestDecodeInspectRefuses(t *testing.T) {
	num, text := resp.Value{Int: 1}, resp.Value{Str: []byte("x")}
	for name, v := range map[string][]resp.Value{
		"nothing":             nil,
		"too short":           {num, num, num, num, num, num, num},
		"half a claim":        {num, num, num, num, num, num, num, num, text, num},
		"text for a number":   {num, text, num, num, num, num, num, num},
		"a number for text":   {num, num, num, num, num, num, num, num, num, num, num, num, num, text},
		"a negative number":   {num, {Int: -1}, num, num, num, num, num, num},
		"text for the ticket": {num, num, num, num, num, num, num, num, text, text, num, num, num, text},
		"more votes":          {num, num, num, num, num, {Int: 2}, num, num},
	} {
		_, err := script.DecodeInspect(v)
		assert.Error(t, err, name)
	}
}
