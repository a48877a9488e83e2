package script_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// In one request, one leaves a name and another comes, twice over: what is done
// at once in the end does not touch what has come since.
func TestSuccessionInABatch(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	for _, capacity := range []uint64{1, 1 << 30} {
		n := newNode(c)
		n.keys = script.NewKeys("test", strconv.FormatUint(capacity, 10)).At(home)
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 0 - 0 60000", 0).Err())
		var keys, words []byte
		nKeys, nArgs := 0, 0
		for i, op := range []protocol.Op{protocol.OpJoin, protocol.OpLeave, protocol.OpJoin, protocol.OpBeat,
			protocol.OpLeave, protocol.OpJoin} {
			terms := n.terms([]uint64{1, 1, 2, 2, 2, 3}[i], capacity)
			var k, a int
			keys, words, k, a = script.AppendItem(keys, words, n.keys, &terms,
				protocol.Request{Op: op, Ticket: 1280 * protocol.Ticket(terms.ID[0])})
			nKeys, nArgs = nKeys+k, nArgs+a
		}
		last := n.terms(3, capacity)
		kind := script.Kind(&last, join(1))
		reply, err := c.Do(t.Context(), args(t, script.AppendBatch(nil, n.keys.Marker(), 0, time.Minute, "owner",
			kind, keys, words, nKeys, nArgs))...).Text()
		require.NoError(t, err)
		assert.Equal(t, "1 1 1 1 1 1", strings.Join(strings.Fields(reply)[script.BatchHead:], " "))
		plain := ""
		if capacity == 1 {
			plain = last.ID.String()
		}
		assert.Equal(t, plain, c.Get(t.Context(), n.keys.Plain()).Val())
		a := n.do(t, last, protocol.Request{Op: protocol.OpBeat})
		assert.True(t, a.Vote)
	}
}

// A beat among many renews the state and the redlock key, and does not bring
// back a claim whose lease has ended.
func TestBeatInABatch(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	ctx := t.Context()
	n := newNode(c)
	require.NoError(t, c.Set(ctx, n.keys.Marker(), "7 0 - 0 60000", 0).Err())
	one := func(terms protocol.Terms, op protocol.Op) string {
		r := protocol.Request{Op: op, Ticket: 640}
		keys, words, nKeys, nArgs := script.AppendItem(nil, nil, n.keys, &terms, r)
		reply, err := c.Do(ctx, args(t, script.AppendBatch(nil, n.keys.Marker(), 0, time.Minute, "owner",
			script.Kind(&terms, r), keys, words, nKeys, nArgs))...).Text()
		require.NoError(t, err)
		return strings.Fields(reply)[script.BatchHead]
	}
	long, short := n.terms(1, 1), n.terms(2, 1<<30)
	short.TTL = 30 * time.Millisecond
	require.Equal(t, "1", one(long, protocol.OpJoin))
	require.NoError(t, c.PExpire(ctx, n.keys.Plain(), time.Second).Err())
	before := c.Get(ctx, n.keys.State()).Val()
	time.Sleep(2 * time.Millisecond)
	require.Equal(t, "1", one(long, protocol.OpBeat))
	assert.Greater(t, c.Get(ctx, n.keys.State()).Val(), before, "a later expiry")
	assert.Greater(t, c.PTTL(ctx, n.keys.Plain()).Val(), 15*time.Second)
	require.Equal(t, "1", one(long, protocol.OpLeave))

	n.keys = script.NewKeys("test", "another name").At(home)
	require.Equal(t, "1", one(short, protocol.OpJoin))
	time.Sleep(40 * time.Millisecond)
	before = c.Get(ctx, n.keys.State()).Val()
	assert.Equal(t, "0", one(short, protocol.OpBeat))
	assert.Equal(t, before, c.Get(ctx, n.keys.State()).Val())
}

// A join among many compares fences as texts, too: it gets no ticket below a
// fence that has more digits.
func TestFenceWithMoreDigitsInABatch(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	for _, capacity := range []uint64{1, 1 << 30} {
		n := newNode(c)
		n.keys = script.NewKeys("test", strconv.FormatUint(capacity, 10)).At(home)
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 0 - 0 60000", 0).Err())
		one := func(id uint64, op protocol.Op, ticket protocol.Ticket) string {
			terms, r := n.terms(id, capacity), protocol.Request{Op: op, Ticket: ticket}
			keys, words, nKeys, nArgs := script.AppendItem(nil, nil, n.keys, &terms, r)
			reply, err := c.Do(t.Context(), args(t, script.AppendBatch(nil, n.keys.Marker(), 0, time.Minute, "owner",
				script.Kind(&terms, r), keys, words, nKeys, nArgs))...).Text()
			require.NoError(t, err)
			return strings.Fields(reply)[script.BatchHead]
		}
		require.Equal(t, "1", one(1, protocol.OpJoin, 1000))
		require.Equal(t, "1", one(1, protocol.OpLeave, 1000))
		assert.Equal(t, "0", one(2, protocol.OpJoin, 999), "capacity %d", capacity)
		assert.Greater(t, n.do(t, n.terms(2, capacity), join(999)).Ticket, protocol.Ticket(1000))
		require.Equal(t, "1", one(2, protocol.OpLeave,
			n.do(t, n.terms(2, capacity), protocol.Request{Op: protocol.OpBeat}).Ticket))
		assert.Equal(t, "1", one(3, protocol.OpJoin, 5000), "as many digits, and above")
	}
}
