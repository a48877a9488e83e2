package script_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/script/conformance"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Names spread over the buckets, and always in the same way.
func TestBucketOf(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []int{32, 41, 16}, []int{script.BucketOf("a"),
		script.BucketOf("b"), script.BucketOf("invoices")})
	in := make([]int, script.Buckets)
	for i := range 64_000 {
		in[script.BucketOf("name "+strconv.Itoa(i))]++
	}
	assert.Greater(t, slices.Min(in), 800)
	assert.Less(t, slices.Max(in), 1200)
}

// On a server in cluster mode the scripts do what the model says, too.
func TestConformanceInACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartSharded(t, 1, false).Node(0).Client()
	conformance.Run(t, conformance.Config{Client: c,
		Sequences: min(*sequences, 200), Seed: *seed, Bucketed: true})
}

// bucketRequests are all requests of a bucket, by what they do.
func bucketRequests(n *node, prefix string) map[string][]byte {
	terms := n.terms(9, 1)
	counting := terms
	counting.Counting, counting.Capacity = true, 3
	all := map[string][]byte{
		"mark":      script.AppendMark(nil, n.keys.Marker(), protocol.ID{1}, "run", ""),
		"caught up": script.AppendCaughtUp(nil, n.keys.Marker(), 1),
		"inspect":   script.AppendInspect(nil, n.keys, 1, 0),
		"set": script.AppendSet(nil, prefix,
			nodeset.RecordStep{Kind: nodeset.SetPromise, Ballot: "f"}, protocol.ID{1}, "run"),
	}
	for _, op := range []protocol.Op{protocol.OpJoin, protocol.OpSettle, protocol.OpBeat, protocol.OpLeave,
		protocol.OpRead, protocol.OpOpen, protocol.OpPut, protocol.OpRepair} {
		r := protocol.Request{Op: op, Ticket: 700}
		if op >= protocol.OpRead {
			r.Stored, r.Promise = &protocol.Stored{Version: protocol.Version{Ticket: 700, ID: terms.ID}},
				&protocol.Version{Ticket: 700, ID: terms.ID}
		}
		all[op.String()] = script.AppendCommand(nil, n.keys, &terms, "owner", 0, time.Minute, r)
		if op < protocol.OpRead {
			all[op.String()+" of a semaphore"] = script.AppendCommand(nil, n.keys,
				&counting, "owner", 0, time.Minute, r)
		}
		if kind := script.Kind(&terms, r); kind > 0 {
			keys, words, nKeys, nArgs := script.AppendItem(nil, nil, n.keys, &terms, r)
			all[op.String()+" in a batch"] = script.AppendBatch(nil, n.keys.Marker(), 0, time.Minute, "owner",
				kind, keys, words, nKeys, nArgs)
		}
	}
	return all
}

// A server that hands a slot over refuses each request whole, whichever keys it
// still has.
func TestMovingSlotIsRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := redistest.StartSharded(t, 2, false)
	prefix := script.BucketPrefix("test", 5)
	slot, err := s.Slot(ctx, script.SetKey(prefix))
	require.NoError(t, err)
	from, err := s.Master(ctx, slot)
	require.NoError(t, err)
	to := s.Node(0)
	if to == from {
		to = s.Node(1)
	}
	for _, c := range []*redistest.Server{from, to} {
		for _, one := range script.All() {
			require.NoError(t, c.Client().ScriptLoad(ctx, one.Source).Err())
		}
	}
	n := newNode(from.Client())
	n.keys = script.NewKeys(prefix, "a name").At(home)
	requests := bucketRequests(n, prefix)

	// Each key of a request exists but the one that never does.
	for name, command := range requests {
		words := args(t, command)
		count, err := strconv.Atoi(words[2].(string))
		require.NoError(t, err)
		keys := words[3 : 3+count]
		assert.Contains(t, keys, any(script.AbsentKey(prefix)), name)
		for _, k := range keys {
			if k != script.AbsentKey(prefix) {
				require.NoError(t, from.Client().Set(ctx, k.(string), "x", 0).Err())
			}
		}
	}
	require.NoError(t, from.Client().Set(ctx, n.keys.Marker(), "1 0 run 0 w", 0).Err())
	require.NoError(t, from.Client().Del(ctx, n.keys.State(), n.keys.Record(), n.keys.Watchers()).Err())
	n.do(t, n.terms(1, 1), join(640))
	stored := protocol.Request{Op: protocol.OpRepair,
		Stored: &protocol.Stored{Version: protocol.Version{Ticket: 640}}, Promise: &protocol.Version{}}
	_, err = n.send(t, n.terms(1, 1), stored)
	require.NoError(t, err)

	move, err := s.BeginMove(ctx, slot, to)
	require.NoError(t, err)
	refused := func(when string) {
		for name, command := range requests {
			words := args(t, command)
			assert.Regexp(t, "^(TRYAGAIN|ASK)", from.Client().Do(ctx, words...).Err(), fmt.Sprint(name, ", ", when))
			assert.ErrorContains(t, to.Client().Do(ctx, words...).Err(), "MOVED",
				fmt.Sprint(name, ", ", when, ", at the other server"))
		}
	}
	refused("all keys are here")
	// Without that key the server carries some of them out.
	words := slices.Clone(args(t, requests["caught up"]))
	words[2] = "1"
	require.NoError(t, from.Client().Do(ctx, slices.Delete(words, 4, 5)...).Err())

	require.NoError(t, move.Key(ctx, n.keys.State()))
	refused("the queue has moved")
	require.NoError(t, move.Key(ctx, n.keys.Marker()))
	refused("the marker has moved, too")
	require.NoError(t, move.End(ctx))
	other := newNode(to.Client())
	other.keys = n.keys
	assert.True(t, other.do(t, n.terms(1, 1), protocol.Request{Op: protocol.OpBeat}).Vote,
		"the holder has its vote at the other server")
}
