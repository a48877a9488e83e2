package script_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func join(ticket protocol.Ticket) protocol.Request {
	return protocol.Request{Op: protocol.OpJoin, Ticket: ticket}
}

// A key of another type in the way is an error, and nothing is stored alongside
// it.
func TestKeyOfAnotherType(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	ctx := t.Context()
	n := newNode(c)
	list := func(key string) func() { return func() { require.NoError(t, c.LPush(ctx, key, "x").Err()) } }
	for name, tc := range map[string]struct {
		put   func()
		queue bool // a claim is there already
	}{
		"plain key": {put: list(n.keys.Plain())},
		"state":     {put: list(n.keys.State())},
		"marker":    {put: list(n.keys.Marker())},
		"queue":     {put: list(n.keys.Queue()), queue: true},
		"claims":    {put: list(n.keys.Claims()), queue: true},
		"state that is not ours": {put: func() {
			require.NoError(t, c.Set(ctx, n.keys.State(), "hello", 0).Err())
		}},
		"plain key, claim queued": {put: func() { c.Del(ctx, n.keys.Plain()); list(n.keys.Plain())() },
			queue: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.FlushAll(ctx).Err())
			require.NoError(t, c.Set(ctx, n.keys.Marker(), "7 0 run 0", 0).Err())
			if strings.HasPrefix(name, "marker") {
				c.Del(ctx, n.keys.Marker())
			}
			if tc.queue {
				n.do(t, n.terms(1, 1), join(640))
			}
			tc.put()
			before := dump(t, n)
			for _, op := range []protocol.Op{protocol.OpJoin, protocol.OpSettle} {
				_, err := n.send(t, n.terms(2, 1), protocol.Request{Op: op, Ticket: 641})
				require.Error(t, err)
				assert.True(t, strings.HasPrefix(err.Error(), "WRONGTYPE"), err)
				assert.Equal(t, before, dump(t, n))
			}
			// One of many does nothing, and is asked for again by itself.
			terms := n.terms(2, 1)
			keys, words, nKeys, nArgs := script.AppendItem(nil, nil, n.keys, &terms, join(641))
			command := script.AppendBatch(nil, n.keys.Marker(), 0, time.Minute, "owner",
				script.Kind(&terms, join(641)), keys, words, nKeys, nArgs)
			reply, err := c.Do(ctx, args(t, command)...).Text()
			require.NoError(t, err)
			assert.Equal(t, "0", strings.Fields(reply)[script.BatchHead])
			assert.Equal(t, before, dump(t, n))
		})
	}
}

// So it is where a queue is there already, whatever the request.
func TestQueueKeyOfAnotherType(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	for _, key := range []string{"plain", "state", "queue", "claims"} {
		n := newNode(c)
		require.NoError(t, c.FlushAll(t.Context()).Err())
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 0 run 0", 0).Err())
		for i := range uint64(3) {
			n.do(t, n.terms(i+1, 1), join(640))
		}
		name := map[string]string{"plain": n.keys.Plain(), "state": n.keys.State(), "queue": n.keys.Queue(),
			"claims": n.keys.Claims()}[key]
		require.NoError(t, c.Del(t.Context(), name).Err())
		require.NoError(t, c.LPush(t.Context(), name, "x").Err())
		before := dump(t, n)
		for id := range uint64(4) {
			for _, op := range []protocol.Op{protocol.OpLeave, protocol.OpBeat, protocol.OpJoin, protocol.OpSettle} {
				_, err := n.send(t, n.terms(id+1, 1), protocol.Request{Op: op, Ticket: 10000})
				require.ErrorContains(t, err, "WRONGTYPE", "%s, %v of %d", key, op, id+1)
				assert.Equal(t, before, dump(t, n))
			}
		}
	}
}

// A queue that was tampered with gives an error, not a second holder.
func TestDamagedQueue(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	n.do(t, n.terms(1, 1), join(640))
	n.do(t, n.terms(2, 1), join(641))
	require.NoError(t, c.ZRem(t.Context(), n.keys.Queue(), n.terms(1, 1).ID.String()).Err())
	_, err := n.send(t, n.terms(2, 1), protocol.Request{Op: protocol.OpBeat})
	assert.ErrorContains(t, err, "damaged")

	// A claim that cannot be read may be a client's.
	other := newNode(c)
	other.keys = script.NewKeys("test", "another name").At(home)
	for _, state := range []string{"S5 ab something", "S5 ab+1 2", "S5 ab+", "S5 ab 1 cd 5 1 9 2"} {
		require.NoError(t, c.Set(t.Context(), other.keys.State(), state, 0).Err())
		for _, op := range []protocol.Op{protocol.OpJoin, protocol.OpBeat, protocol.OpLeave} {
			_, err = other.send(t, other.terms(1, 1), protocol.Request{Op: op, Ticket: 640})
			assert.ErrorContains(t, err, "WRONGTYPE", "%v of %q", op, state)
		}
		assert.Equal(t, state, c.Get(t.Context(), other.keys.State()).Val())
	}

	// What is left of a queue without its state belongs to no claim.
	require.NoError(t, c.Del(t.Context(), n.keys.State(), n.keys.Plain()).Err())
	assert.True(t, n.do(t, n.terms(3, 1), join(640)).Vote)
	assert.False(t, n.do(t, n.terms(4, 1), join(641)).Vote)
	n.do(t, n.terms(3, 1), protocol.Request{Op: protocol.OpLeave})
	assert.True(t, n.do(t, n.terms(4, 1), protocol.Request{Op: protocol.OpBeat}).Vote)
}

// The keys of a name live as long as any lease in it and the retention.
func TestRetention(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	long, short := n.terms(1, 3), n.terms(2, 3)
	long.TTL, short.TTL = 30*time.Second, time.Second
	n.do(t, long, join(640))
	n.do(t, short, join(641))
	n.do(t, short, protocol.Request{Op: protocol.OpBeat})
	for _, key := range []string{n.keys.State(), n.keys.Queue(), n.keys.Claims()} {
		ttl := c.PTTL(t.Context(), key).Val()
		assert.Greater(t, ttl, 30*time.Second, key)
		assert.Less(t, ttl, 30*time.Second+2*time.Minute, key)
	}
	longer := n.terms(3, 3)
	longer.TTL = 10 * time.Minute
	n.do(t, longer, join(640))
	for _, key := range []string{n.keys.State(), n.keys.Queue(), n.keys.Claims()} {
		assert.Greater(t, c.PTTL(t.Context(), key).Val(), 10*time.Minute, key)
	}
	n.do(t, longer, protocol.Request{Op: protocol.OpLeave})
	n.do(t, short, protocol.Request{Op: protocol.OpLeave})
	n.do(t, long, protocol.Request{Op: protocol.OpLeave})
	assert.Equal(t, int64(1), c.Exists(t.Context(), n.keys.State(), n.keys.Queue(),
		n.keys.Claims(), n.keys.Plain()).Val())
	assert.Greater(t, c.PTTL(t.Context(), n.keys.State()).Val(), time.Minute)
}

// A queue that all have dropped out of is a new key to Redis: it must get its
// expiry again.
func TestRetentionAfterAllExpired(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	for i := range uint64(3) {
		terms := n.terms(i+1, 1)
		terms.TTL = 200 * time.Millisecond // all the same: no later lease is to hide it
		if i == 2 {
			time.Sleep(250 * time.Millisecond)
		}
		assert.Equal(t, i != 1, n.do(t, terms, join(640)).Vote)
	}
	for _, key := range []string{n.keys.State(), n.keys.Queue(), n.keys.Claims()} {
		assert.Greater(t, c.PTTL(t.Context(), key).Val(), 20*time.Second, key)
	}
}

// A marker that names the run is kept. A new run, a clock that jumped and a
// guard time that began by a time to come begin another incarnation, which is
// not caught up. A node without that marker is of another set.
func TestMark(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	key := n.keys.Marker()
	mark := func(run, jumped string) protocol.Incarnation {
		id := protocol.ID(uuid(t))
		reply, err := c.Do(t.Context(), args(t, script.AppendMark(nil, key, id, run, jumped))...).Slice()
		require.NoError(t, err)
		inc, _, err := script.DecodeMarker(values(t, reply))
		require.NoError(t, err)
		return inc
	}
	long := time.Now().Add(-time.Hour).UnixMilli()
	for _, was := range []string{fmt.Sprint("7 ", long, " run 20"), fmt.Sprint("7 ", long, " run 20 w"),
		"7 0 run 20 w", "7 0 run 20 l"} {
		require.NoError(t, c.Set(t.Context(), key, was, 0).Err())
		for _, jumped := range []string{"", "8"} {
			assert.Equal(t, protocol.Incarnation(7), mark("run", jumped))
			assert.Equal(t, was, c.Get(t.Context(), key).Val())
		}
	}
	of := fmt.Sprint("7 ", long, " run+former 20 w")
	require.NoError(t, c.Set(t.Context(), key, of, 0).Err())
	for _, run := range []string{"run+former", "run"} { // it has forgotten its former master
		assert.Equal(t, protocol.Incarnation(7), mark(run, ""))
		assert.Equal(t, of, c.Get(t.Context(), key).Val())
	}
	for what, of := range map[string][3]string{
		"it was a replica":          {fmt.Sprint("7 ", long, " run 20 w"), "run+former", ""},
		"it was another's replica":  {fmt.Sprint("7 ", long, " run+former 20 w"), "run+other", ""},
		"a part of a run":           {fmt.Sprint("7 ", long, " run+former 20 w"), "ru", ""},
		"a part of a former master": {fmt.Sprint("7 ", long, " run+former 20 w"), "run+form", ""},
		"another run":               {fmt.Sprint("7 ", long, " run 20 w"), "other", ""},
		"its clock has jumped":      {fmt.Sprint("7 ", long, " run 20 w"), "run", "7"},
		"its guard time is yet to come": {fmt.Sprint("7 ", time.Now().Add(time.Minute).UnixMilli(), " run 20 w"),
			"run", ""},
	} {
		require.NoError(t, c.Set(t.Context(), key, of[0], 0).Err())
		inc := mark(of[1], of[2])
		assert.NotEqual(t, protocol.Incarnation(7), inc, what)
		words := strings.Fields(c.Get(t.Context(), key).Val())
		require.Len(t, words, 4, what)
		assert.Equal(t, []string{fmt.Sprint(inc), of[1], "20"}, []string{words[0], words[2], words[3]}, what)
		assert.InDelta(t, time.Now().UnixMilli(), number(t, words[1]), 2000, what)
		assert.Negative(t, c.TTL(t.Context(), key).Val(), what)
		assert.Equal(t, inc, mark(of[1], of[2]), "%s, once", what)
	}
	require.NoError(t, c.Del(t.Context(), key).Err())
	err := c.Do(t.Context(), args(t, script.AppendMark(nil, key, protocol.ID{1}, "run", ""))...).Err()
	assert.ErrorContains(t, err, script.OtherSet)
}

// A claim that would outlast the retention was stored before the clock
// was set back. It must neither be in the way for as long as that was, nor end
// before its lease may have.
func TestClaimOfTheFuture(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	beat := protocol.Request{Op: protocol.OpBeat}
	for _, waiters := range []uint64{0, 2} {
		n := newNode(c)
		before, now := newNode(c), 500*time.Millisecond
		before.retention, n.retention = 2*time.Hour, now
		for i := range waiters + 1 {
			early := n.terms(i+2, 1)
			early.TTL = time.Hour
			require.Equal(t, i == 0, before.do(t, early, join(640)).Vote)
		}
		mine := n.terms(1, 1)
		mine.TTL = 200 * time.Millisecond
		began := time.Now()
		a := n.do(t, mine, join(640))
		assert.False(t, a.Vote, "%d waiters: the lease may be a live one", waiters)
		for !a.Vote && time.Since(began) < 10*time.Second {
			time.Sleep(20 * time.Millisecond)
			if a = n.do(t, mine, beat); a.Status == protocol.Missing { // the lease ended first: the machine is busy
				a = n.do(t, mine, join(640))
			}
		}
		assert.True(t, a.Vote, "%d waiters", waiters)
		assert.GreaterOrEqual(t, time.Since(began), now)
		assert.Equal(t, mine.ID.String(), c.Get(t.Context(), n.keys.Plain()).Val())
		n.do(t, mine, protocol.Request{Op: protocol.OpLeave})
		assert.True(t, n.do(t, n.terms(9, 1), join(640)).Vote, "the others are gone for good")
		require.NoError(t, c.FlushAll(t.Context()).Err())
	}
}

// Another client's key may stay for longer than Lua writes a number without an
// exponent.
func TestKeyOfTheFarFuture(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	require.NoError(t, c.Do(t.Context(), "SET", n.keys.Plain(), "another's", "PX", "1234567890123456").Err())
	for id, op := range []protocol.Op{protocol.OpJoin, protocol.OpBeat, protocol.OpJoin, protocol.OpBeat} {
		a := n.do(t, n.terms(uint64(id/2)+1, 1), protocol.Request{Op: op, Ticket: 640})
		assert.False(t, a.Vote)
		assert.Equal(t, id < 2, a.Foreign, "the first gets it")
	}
}

// A list is whole, or begins where it is asked to, and the totals agree; more
// than 256 claims are not listed.
func TestLongList(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	w := n.terms(5000, 1<<30)
	beat := func(from protocol.Ticket) protocol.Answer {
		return n.do(t, w, protocol.Request{Op: protocol.OpBeat, Ticket: from, List: true})
	}
	for i := range uint64(255) {
		n.do(t, n.terms(i, 1<<30), join(640))
	}
	a := n.do(t, w, protocol.Request{Op: protocol.OpJoin, Ticket: 640, List: true})
	assert.Len(t, a.Lower, 255)
	assert.Equal(t, uint64(255), a.Sum)
	n.do(t, n.terms(5001, 1<<30), join(640))
	a = beat(0)
	assert.False(t, a.Listed, "too many")
	assert.True(t, a.HasTotals, "the totals of all others")
	digest := uint64(0)
	for i := range uint64(255) {
		digest += n.terms(i, 1).ID.Digest()
	}
	assert.Equal(t, uint64(256), a.Sum)
	assert.Equal(t, (digest+n.terms(5001, 1).ID.Digest())%protocol.DigestMod, a.Digest)
	a = beat(a.Ticket - 100)
	assert.Less(t, len(a.Lower), 101, "from a ticket on")
	assert.Equal(t, uint64(255), a.Sum, "of all of them, and of none above")
	assert.Equal(t, a.Sum, a.BaseSum+uint64(len(a.Lower)))
}

// Fences are compared as texts. One with more digits than the ticket is above it,
// though the text sorts below.
func TestFenceWithMoreDigits(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	n.do(t, n.terms(1, 1), join(1000))
	n.do(t, n.terms(1, 1), protocol.Request{Op: protocol.OpLeave})
	assert.Greater(t, n.do(t, n.terms(2, 1), join(999)).Ticket, protocol.Ticket(1000))
}
