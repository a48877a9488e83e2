package script_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func join(ticket protocol.Ticket) protocol.Request {
	return protocol.Request{Op: protocol.OpJoin, Ticket: ticket}
}

// A key of another type in the way is an error, and nothing is stored beside
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
		"plain key":               {put: list(n.keys.Plain())},
		"state":                   {put: list(n.keys.State())},
		"marker":                  {put: list(n.keys.Marker())},
		"queue":                   {put: list(n.keys.Queue()), queue: true},
		"claims":                  {put: list(n.keys.Claims()), queue: true},
		"state that is not ours":  {put: func() { require.NoError(t, c.Set(ctx, n.keys.State(), "hello", 0).Err()) }},
		"plain key, claim queued": {put: func() { c.Del(ctx, n.keys.Plain()); list(n.keys.Plain())() }, queue: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.FlushAll(ctx).Err())
			require.NoError(t, c.Set(ctx, n.keys.Marker(), "7 0 - 0 60000", 0).Err())
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
			command := script.AppendBatch(nil, script.MarkerKey("test"), 0, time.Minute, "owner", script.Kind(&terms, join(641)), keys, words, nKeys, nArgs)
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
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 0 - 0 60000", 0).Err())
		for i := range uint64(3) {
			n.do(t, n.terms(i+1, 1), join(640))
		}
		name := map[string]string{"plain": n.keys.Plain(), "state": n.keys.State(), "queue": n.keys.Queue(), "claims": n.keys.Claims()}[key]
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
	other.keys = script.NewKeys("test", "another name")
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
	assert.Equal(t, int64(1), c.Exists(t.Context(), n.keys.State(), n.keys.Queue(), n.keys.Claims(), n.keys.Plain()).Val())
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

func TestMark(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	mark := func(run, lost string) protocol.Incarnation { return marker(t, c, run, lost, false) }
	first := mark("run1", script.Lost)
	assert.Equal(t, first, mark("run1", script.Lost), "reported before")
	assert.Equal(t, first, mark("run2", script.Kept), "nothing lost")
	second := mark("run2", script.Lost)
	assert.NotEqual(t, first, second)
	assert.Equal(t, second, marker(t, c, "run3", script.Kept, true), "bootstrap keeps the incarnation")
	assert.Equal(t, second, mark("run3", script.Lost), "and knows the run")

	n := newNode(c)
	require.NoError(t, c.Del(t.Context(), n.keys.Marker()).Err())
	third := n.do(t, n.terms(1, 1), join(640)).Incarnation
	assert.Equal(t, third, mark("run3", script.Lost), "a script does not know the run, but it was in this one")
	assert.Equal(t, third, mark("run3", script.Lost))
	assert.NotEqual(t, third, mark("run4", script.Lost))

	// A clock jump counts once in an incarnation, however many clients report
	// it.
	fourth := mark("run4", script.Lost)
	fifth := mark("run4", fmt.Sprint(fourth))
	assert.NotEqual(t, fourth, fifth)
	assert.Equal(t, fifth, mark("run4", fmt.Sprint(fourth)), "a client has reported it before")
	for _, run := range []string{"run4", "-"} {
		soon := fmt.Sprintf("7 %d %s 0 0 w", time.Now().Add(time.Minute).UnixMilli(), run)
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), soon, 0).Err())
		assert.NotEqual(t, protocol.Incarnation(7), mark("run4", script.Lost), "or was set back")
	}

	// A run that has lasted for long may have begun with an old memory, or have
	// got another's since. What a script has marked in an earlier run is no
	// better.
	ten := strconv.FormatInt(time.Now().Add(-10*time.Second).UnixMilli(), 10)
	for _, run := range []string{"run5", "-"} {
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 "+ten+" "+run+" 0 0 w", 0).Err())
		assert.NotEqual(t, protocol.Incarnation(7), mark("run6", script.Lost))
		got, err := c.Get(t.Context(), n.keys.Marker()).Result()
		require.NoError(t, err)
		var inc, born int64
		var is string
		_, err = fmt.Sscan(got, &inc, &born, &is)
		require.NoError(t, err)
		assert.Equal(t, "run6", is)
		assert.False(t, strings.HasSuffix(got, " w"), "not caught up")
		assert.InDelta(t, time.Now().UnixMilli(), born, 2000, "and the guard time begins")
	}
	require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 0 run6 0 0 w", 0).Err())
	assert.Equal(t, protocol.Incarnation(7), mark("run7", script.Kept), "every write was on the disk")
	assert.NotZero(t, marker(t, c, "run4", script.Kept, true))
}

// A claim that would outlast the longest retention was stored before the clock
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
		marker := c.Get(t.Context(), n.keys.Marker()).Val()
		require.Contains(t, marker, " 7200000")
		// As if so long a lease had never been promised.
		require.NoError(t, c.Set(t.Context(), n.keys.Marker(), strings.Replace(marker, " 7200000", " 500", 1), 0).Err())
		mine := n.terms(1, 1)
		mine.TTL = 200 * time.Millisecond
		began := time.Now()
		a := n.do(t, mine, join(640))
		assert.False(t, a.Vote, "%d waiters: the lease may be a live one", waiters)
		for !a.Vote && time.Since(began) < 10*time.Second {
			time.Sleep(20 * time.Millisecond)
			a = n.do(t, mine, beat)
		}
		assert.True(t, a.Vote, "%d waiters", waiters)
		assert.GreaterOrEqual(t, time.Since(began), now)
		assert.Equal(t, mine.ID.String(), c.Get(t.Context(), n.keys.Plain()).Val())
		n.do(t, mine, protocol.Request{Op: protocol.OpLeave})
		assert.True(t, n.do(t, n.terms(9, 1), join(640)).Vote, "the others are gone for good")
		require.NoError(t, c.FlushAll(t.Context()).Err())
	}
}

// The requests of a client with a short retention drop no claim of another one
// with a long lease, nor the fence before that one's retention is over.
func TestLongestRetention(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	ctx := t.Context()
	leave := protocol.Request{Op: protocol.OpLeave}
	for _, capacity := range []uint64{1, 3, 1 << 30} {
		for _, first := range []string{"long", "short"} {
			require.NoError(t, c.FlushAll(ctx).Err())
			long, short := newNode(c), newNode(c)
			long.guard, long.retention = 0, 30*time.Minute
			l, s := long.terms(1, capacity), short.terms(2, capacity)
			l.TTL, s.TTL = 10*time.Minute, 8*time.Second
			l.Weight, s.Weight = capacity, capacity
			if first == "short" { // a client has been here before, and so wrote the marker
				short.do(t, s, join(576))
				short.do(t, s, leave)
			}
			require.True(t, long.do(t, l, join(640)).Vote)
			for _, op := range []protocol.Op{protocol.OpJoin, protocol.OpBeat, protocol.OpSettle, protocol.OpLeave, protocol.OpJoin} {
				a := short.do(t, s, protocol.Request{Op: op, Ticket: 704})
				assert.False(t, a.Vote, "%v of %d, %s first", op, capacity, first)
			}
			assert.True(t, long.do(t, l, protocol.Request{Op: protocol.OpBeat}).Vote)
			long.do(t, l, leave)
			assert.True(t, short.do(t, s, protocol.Request{Op: protocol.OpBeat}).Vote)
			short.do(t, s, leave)
			assert.Greater(t, c.PTTL(ctx, short.keys.State()).Val(), 29*time.Minute, "%d, %s first", capacity, first)

			// Alone, too, in each way in which a claim that is alone can come,
			// stay and leave.
			short.do(t, s, join(5000))
			short.do(t, s, protocol.Request{Op: protocol.OpBeat})
			short.do(t, s, leave)
			assert.Greater(t, c.PTTL(ctx, short.keys.State()).Val(), 29*time.Minute, "%d, %s first", capacity, first)
			for i, op := range []protocol.Op{protocol.OpJoin, protocol.OpBeat, protocol.OpLeave} {
				r := protocol.Request{Op: op, Ticket: 10000}
				keys, words, nKeys, nArgs := script.AppendItem(nil, nil, short.keys, &s, r)
				_, err := c.Do(ctx, args(t, script.AppendBatch(nil, script.MarkerKey("test"), 0, short.retention, "owner", script.Kind(&s, r), keys, words, nKeys, nArgs))...).Text()
				require.NoError(t, err)
				assert.Greater(t, c.PTTL(ctx, short.keys.State()).Val(), 29*time.Minute, "part %d, %d, %s first", i, capacity, first)
			}
		}
	}
}

// A node that has lost its newest writes votes for the clients with a short
// guard time when the longest that any client has shown to it is over, and not
// earlier.
func TestLongestGuard(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	long, short := newNode(c), newNode(c)
	long.guard, short.guard = 5*time.Minute, 20*time.Second
	recovers := func(n *node, what string) {
		for id := range uint64(2) {
			for _, op := range []protocol.Op{protocol.OpJoin, protocol.OpBeat, protocol.OpSettle} {
				a := n.do(t, n.terms(id+1, 1), protocol.Request{Op: op, Ticket: 640})
				require.Equal(t, protocol.Recovering, a.Status, what)
				assert.Greater(t, a.Wait, 4*time.Minute, what)
			}
		}
		terms := n.terms(1, 1)
		reply, err := c.Do(t.Context(), args(t, script.AppendCommand(nil, n.keys, &terms, "owner", n.guard, n.retention, protocol.Request{Op: protocol.OpRead}))...).Slice()
		require.NoError(t, err)
		a, err := script.DecodeRecord(values(t, reply))
		require.NoError(t, err)
		assert.Equal(t, protocol.Recovering, a.Status, what)
		assert.Greater(t, a.Wait, 4*time.Minute, what)
	}
	marker(t, c, "run1", script.Lost, false)
	long.do(t, long.terms(3, 1), join(640))
	recovers(short, "new")
	marker(t, c, "run2", script.Lost, false)
	recovers(short, "lost")
	marker(t, c, "run3", script.Lost, true)
	assert.True(t, short.do(t, short.terms(1, 1), join(640)).Vote, "bootstrap")
	marker(t, c, "run4", script.Lost, false)
	recovers(short, "lost after a bootstrap")
	terms := short.terms(1, 1)
	keys, words, nKeys, nArgs := script.AppendItem(nil, nil, short.keys, &terms, join(640))
	reply, err := c.Do(t.Context(), args(t, script.AppendBatch(nil, script.MarkerKey("test"), short.guard, short.retention, "owner", script.Kind(&terms, join(640)), keys, words, nKeys, nArgs))...).Text()
	require.NoError(t, err)
	assert.Equal(t, "0", strings.Fields(reply)[script.BatchHead])
}

// The settings at the end of the marker of a node that is caught up are
// compared as text. Digits before or after them belong to a longer guard time
// or retention, which counts.
func TestSettingsThatLookAlike(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	n.guard, n.retention = 20*time.Second, 300*time.Second
	born := time.Now().Add(-time.Minute).UnixMilli()
	for settings, votes := range map[string]bool{
		"20000 300000 w": true, "20000 300000": true, "120000 300000 w": false, "120000 300000": false, "20000 3000000 w": true,
	} {
		require.NoError(t, c.FlushAll(t.Context()).Err())
		load(t, c)
		require.NoError(t, c.Set(t.Context(), script.MarkerKey("test"), fmt.Sprint("7 ", born, " run ", settings), 0).Err())
		a := n.do(t, n.terms(1, 1), join(640))
		assert.EqualValues(t, 7, a.Incarnation, settings)
		assert.Equal(t, votes, a.Vote, settings)
		assert.Equal(t, settings == "20000 3000000 w", c.PTTL(t.Context(), n.keys.State()).Val() > 30*time.Minute, settings)
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

func TestDecodeRefuses(t *testing.T) {
	i := func(v ...int64) (r []resp.Value) {
		for _, x := range v {
			r = append(r, resp.Value{Int: x})
		}
		return r
	}
	for name, v := range map[string][]resp.Value{
		"nothing":              nil,
		"short":                i(1, 7),
		"unknown status":       i(5, 7, 640),
		"clock past 2^43":      i(8<<43+9, 7, 640, 1),
		"status 0":             i(0, 7, 640),
		"status as text":       {{Str: []byte("1")}, {Int: 7}, {Int: 640}, {}},
		"no incarnation":       i(1, 0, 640, 1),
		"negative ticket":      i(1, 7, -1, 1),
		"ticket past 2^53":     i(1, 7, 1<<53, 1),
		"vote without ticket":  i(1, 7, 0, 1),
		"unknown flag":         i(1, 7, 640, 32),
		"vote and foreign":     i(1, 7, 640, 5),
		"listed, no totals":    i(1, 7, 640, 16),
		"long wait":            i(1, 7, 640, 0, 1<<50),
		"sum without digest":   i(1, 7, 640, 9, 0, 1),
		"totals, not flagged":  i(1, 7, 640, 1, 0, 1, 2),
		"digest past 2^52":     i(1, 7, 640, 9, 0, 1, 1<<52),
		"list, not listed":     i(1, 7, 640, 9, 0, 1, 2, 3, 4),
		"lower id is a number": i(1, 7, 640, 25, 0, 1, 2, 1, 2, 3, 4),
		"no totals of all":     i(1, 7, 640, 25, 0, 1, 2),
		"all past 2^53":        i(1, 7, 640, 25, 0, 1, 2, 1<<53, 2),
		"all below the sum":    i(1, 7, 640, 25, 0, 3, 2, 2, 2),
		"endless recovery":     i(3, 7, 1<<50),
		"capacity 0":           i(4, 7, 0),
		"long missing":         i(2, 7, 640, 1),
	} {
		_, err := script.Decode(v)
		assert.ErrorIs(t, err, script.ErrAnswer, name)
	}
}

func TestParsePushRefuses(t *testing.T) {
	id := strings.Repeat("0a", 16)
	for _, s := range []string{
		"", "v", "w 7 " + id + " 640", "w 8796093022209 7 " + id + " 640", "x 9 7 " + id + " 640", "w 9 7 " + id, "w 9 7 " + id + " 640 1", "w 9 0 " + id + " 640", "w 9 7 " + id + " 0",
		"w 9 7 " + id[1:] + " 640", "w 9 -7 " + id + " 640", "w 9 7 " + id + " 9007199254740992",
		"v 9 7 " + id + " 640 2 0 0", "v 9 7 " + id + " 640 1 0", "v 9 7 " + id + " 640 1 0 0 0", "v 9 7 " + id + " 640 1 0 4503599627370496",
		"v 9 7 " + id + "  640 1 0 0", "v 9 07 " + id + " 640 1 0 0",
	} {
		_, err := script.ParsePush(s)
		assert.ErrorIs(t, err, script.ErrAnswer, s)
	}
}

func TestEncodingAllocatesNothing(t *testing.T) {
	k := script.NewKeys("quorate", "some name")
	terms := protocol.Terms{ID: protocol.ID{1}, Weight: 1, Capacity: 1, TTL: 8 * time.Second}
	buf := make([]byte, 0, 1024)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		buf = script.AppendCommand(buf[:0], k, &terms, "owner", time.Second, time.Minute, join(1<<51))
	}))
}
