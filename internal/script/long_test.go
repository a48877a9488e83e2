package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// allScripts is a request of each kind to a name, each as it is sent.
func allScripts(t *testing.T, n *node) map[string][]any {
	t.Helper()
	terms, waiter := n.terms(1, 1), n.terms(2, 1)
	permit := n.terms(3, 5)
	permit.Counting = true
	of := func(terms protocol.Terms, r protocol.Request) []any { return n.args(t, terms, r) }
	stored := &protocol.Stored{Version: protocol.Version{ID: terms.ID, Ticket: 640}, Value: []byte("v")}
	all := map[string][]any{
		"join":       of(terms, join(640)),
		"settle":     of(terms, protocol.Request{Op: protocol.OpSettle, Ticket: 641}),
		"beat":       of(terms, protocol.Request{Op: protocol.OpBeat}),
		"wait":       of(waiter, join(700)),
		"wait, beat": of(waiter, protocol.Request{Op: protocol.OpBeat}),
		"hand over":  of(terms, protocol.Request{Op: protocol.OpLeave}),
		"leave":      of(waiter, protocol.Request{Op: protocol.OpLeave}),
		"permit":     of(permit, join(640)),
		"read":       of(terms, protocol.Request{Op: protocol.OpRead}),
		"open":       of(terms, protocol.Request{Op: protocol.OpOpen, Stored: stored}),
		"put":        of(terms, protocol.Request{Op: protocol.OpPut, Stored: stored}),
		"repair": of(terms, protocol.Request{Op: protocol.OpRepair, Stored: stored,
			Promise: &protocol.Version{}}),
		"inspect":   args(t, script.AppendInspect(nil, n.keys, 10, 0)),
		"evict":     args(t, script.AppendInspect(nil, n.keys, 10, 640)),
		"mark":      args(t, script.AppendMark(nil, n.keys.Marker(), terms.ID, "run", "")),
		"caught up": args(t, script.AppendCaughtUp(nil, n.keys.Marker(), 7)),
		"set": args(t, script.AppendSet(nil, "test",
			nodeset.RecordStep{Kind: nodeset.SetPromise, Ballot: "1"}, terms.ID, "run")),
	}
	for what, op := range map[string]protocol.Op{"many joins": protocol.OpJoin, "many beats": protocol.OpBeat,
		"many leaves": protocol.OpLeave} {
		r := protocol.Request{Op: op, Ticket: 640}
		keys, words, nKeys, nArgs := script.AppendItem(nil, nil, n.keys, &terms, r)
		all[what] = args(t, script.AppendBatch(nil, n.keys.Marker(), 0, time.Minute, "owner",
			script.Kind(&terms, r), keys, words, nKeys, nArgs))
	}
	return all
}

// Other programs may write to the keys of a name, and of the node. No script
// takes more of such a value than a text of its own has: to read 100 MB stops
// a server for as long as it takes to lose holds.
func TestNoScriptReadsALongValue(t *testing.T) {
	const long = 8 << 20 // a record may have 1 MB
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	ctx := t.Context()
	n := newNode(c)
	number := script.NewKeysBeside("test", "a name", script.Number).Record()
	for key, was := range map[string]string{
		n.keys.Plain():        "",
		n.keys.State():        "S5 ab",
		n.keys.Marker():       "7 0 run 0 w",
		n.keys.Record():       "0 5 " + n.terms(1, 1).ID.String() + " 5 " + n.terms(1, 1).ID.String() + " 0 0 0 ",
		number:                "",
		script.SetKey("test"): "0 0 - - ",
	} {
		for what, command := range allScripts(t, n) {
			require.NoError(t, c.FlushAll(ctx).Err())
			n.serve()
			require.NoError(t, c.Set(ctx, key, was, 0).Err())
			require.NoError(t, c.SetRange(ctx, key, long, "end").Err())
			before := lua(t, c)
			_ = c.Do(ctx, command...).Err() // may be refused, at once
			assert.Less(t, lua(t, c)-before, int64(long/2), "%s with a long value at %s", what, key)
		}
	}
}

// What is too long to be the library's own is another program's. Behind a
// marker it changes nothing.
func TestALongValueIsNotOurs(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	ctx := t.Context()
	n := newNode(c)
	long := strings.Repeat("long ", 1<<18)
	all := allScripts(t, n)
	for key, was := range map[string]string{n.keys.State(): "S5 ab 1 cd 5 1 9 2 ",
		n.keys.Record(): "0 0 ab 5 ab 0 0 0 ", script.SetKey("test"): "0 0 - - "} {
		require.NoError(t, c.FlushAll(ctx).Err())
		n.serve()
		require.NoError(t, c.Set(ctx, key, was+long, 0).Err())
		for _, what := range map[string][]string{
			n.keys.State(): {"join", "beat", "leave", "inspect"}, n.keys.Record(): {"read", "open", "put", "repair"},
			script.SetKey("test"): {"set"},
		}[key] {
			assert.ErrorContains(t, c.Do(ctx, all[what]...).Err(), "WRONGTYPE", what)
			assert.Equal(t, int64(len(was+long)), c.StrLen(ctx, key).Val(), what)
		}
	}
	require.NoError(t, c.FlushAll(ctx).Err())
	n.serve()
	require.NoError(t, c.Append(ctx, n.keys.Marker(), " "+long).Err())
	assert.True(t, n.do(t, n.terms(1, 1), join(640)).Vote)
}

// lua is how much memory scripts have, with what they have read and do not need
// any more.
func lua(t *testing.T, c redis.UniversalClient) int64 {
	t.Helper()
	info, err := c.Info(t.Context(), "memory").Result()
	require.NoError(t, err)
	_, rest, found := strings.Cut(info, "used_memory_lua:")
	require.True(t, found)
	text, _, _ := strings.Cut(rest, "\r\n")
	return number(t, text)
}
