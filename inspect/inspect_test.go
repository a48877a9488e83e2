package inspect_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
)

// quiet is a ttl so long that nothing ends while a test lasts.
const quiet = time.Minute

// until looks at a name until it is as wanted.
func until(t *testing.T, q *quorate.Quorum, name string, is func(r *inspect.Report) bool) (r inspect.Report) {
	t.Helper()
	var err error
	require.True(t, e2e.Eventually(func() bool {
		r, err = inspect.Name(t.Context(), q, name)
		return err == nil && is(&r)
	}), "%+v, %v", &r, err)
	return r
}

// Claims that are renewed together keep their notes.
func TestNotesOfManyClaims(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, e2e.Timing(time.Second))
	var all []*mutex.Mutex
	for i := range 32 {
		ctx, m := t.Context(), mutex.New(q, fmt.Sprint("m", i))
		if i%2 == 0 {
			ctx = quorate.WithNote(ctx, fmt.Sprint("order ", i))
		}
		require.NoError(t, m.LockContext(ctx))
		all = append(all, m)
	}
	for range 2 { // renewals
		for _, m := range all {
			before := m.Lease().ValidUntil()
			require.True(t, e2e.Eventually(func() bool { return m.Lease().ValidUntil().After(before) }))
		}
	}
	for i, m := range all {
		h, err := m.Holder(t.Context())
		require.NoError(t, err)
		if i%2 == 0 {
			assert.Equal(t, fmt.Sprint("order ", i), h.Note)
		} else {
			assert.Empty(t, h.Note)
		}
	}
}

func TestMutex(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	holder := e2e.Open(t, c, e2e.Timing(quiet), quorate.WithOwner("billing@pod-7.x"))
	others := e2e.Open(t, c, e2e.Timing(quiet))
	eye := e2e.Open(t, c, e2e.Timing(quiet))

	r, err := inspect.Name(t.Context(), eye, "m")
	require.NoError(t, err)
	assert.Equal(t, inspect.None, r.Kind)
	assert.Empty(t, r.Holders)
	require.Len(t, r.Nodes, 3)

	m := mutex.New(holder, "m")
	began := time.Now()
	require.NoError(t, m.LockContext(quorate.WithNote(t.Context(), "order 4711: 3 of 5")))
	var tokens []uint64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 3 {
		go func() { _ = mutex.New(others, "m").LockContext(ctx) }()
		r = until(t, eye, "m", func(r *inspect.Report) bool {
			return len(r.Waiters) == i+1 && !slices.ContainsFunc(r.Nodes,
				func(n inspect.Node) bool { return n.Queued != i+2 })
		})
		tokens = append(tokens, r.Waiters[i].Token)
	}
	assert.Equal(t, inspect.Mutex, r.Kind)
	assert.Equal(t, int64(1), r.Capacity)
	require.Len(t, r.Holders, 1)
	h := r.Holders[0]
	assert.Equal(t, m.Lease().Token(), h.Token)
	assert.Equal(t, os.Getpid(), h.PID)
	assert.Equal(t, "billing@pod-7.x", h.Label)
	assert.Equal(t, "order 4711: 3 of 5", h.Note)
	assert.NotEmpty(t, h.Host)
	assert.WithinDuration(t, began, h.Since, 10*time.Second)
	assert.InDelta(t, quiet, h.Left, float64(quiet)/2)
	assert.GreaterOrEqual(t, h.Votes, 2)
	assert.True(t, slices.IsSorted(tokens), "in the order of the queue")
	assert.Empty(t, r.Waiters[0].Label)
	held, err := m.Holder(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "billing@pod-7.x", held.Label)
	assert.Equal(t, "order 4711: 3 of 5", held.Note)

	// A node that hangs is an error in the report, and the others say the rest.
	require.NoError(t, c.Node(1).Stop())
	r, err = inspect.Name(t.Context(), eye, "m")
	require.NoError(t, err)
	require.Len(t, r.Holders, 1)
	assert.Len(t, r.Waiters, 3)
	assert.Error(t, r.Nodes[1].Err)
	assert.NoError(t, r.Nodes[0].Err)

	// Without a majority the report says what is known, alongside the error.
	require.NoError(t, c.Node(2).Stop())
	r, err = inspect.Name(t.Context(), eye, "m")
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.Equal(t, []uint64{h.Token}, r.Nodes[0].Tokens)
	require.NoError(t, c.Node(1).Cont())
	require.NoError(t, c.Node(2).Cont())
}

// What a node says otherwise than a majority is marked.
func TestDifferences(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	m := mutex.New(q, "m")
	m.Lock()
	until(t, q, "m", func(r *inspect.Report) bool { return len(r.Holders) == 1 && r.Holders[0].Votes == 3 })
	require.NoError(t, c.Node(2).Client().Del(t.Context(), "quorate:{m}").Err())
	require.NoError(t, c.Node(2).Client().Set(t.Context(), "m", "another client's", quiet).Err())
	r, err := inspect.Name(t.Context(), q, "m")
	require.NoError(t, err)
	require.Len(t, r.Holders, 1)
	assert.Equal(t, 2, r.Holders[0].Votes)
	assert.Empty(t, r.Nodes[0].Differs)
	assert.Contains(t, r.Nodes[2].Differs,
		fmt.Sprintf("has no claim of the holder with token %d", r.Holders[0].Token))
	assert.Contains(t, strings.Join(r.Nodes[2].Differs, "; "), "another library holds the key of that name for ")
	assert.Zero(t, r.Foreign, "a minority of the keys is no hold")
}

// With a cluster among the nodes each bucket is listed by itself. A node that
// has not answered for one of them is not asked for each of the others.
func TestNodeThatHangsIsGivenUpOnce(t *testing.T) {
	t.Parallel()
	plain := redistest.Start(t, 2)
	q := e2e.OpenAt(t, append(plain.URLs(), redistest.StartSharded(t, 3, false).URL()), e2e.Timing(quiet))
	require.NoError(t, q.Bootstrap(t.Context()))
	mutex.New(q, "m").Lock()
	require.NoError(t, plain.Node(0).Stop())
	began := time.Now()
	var listed []string
	for e, err := range inspect.Names(t.Context(), q, "") {
		require.NoError(t, err)
		listed = append(listed, e.Name)
	}
	assert.Equal(t, []string{"m"}, listed)
	assert.Less(t, time.Since(began), 12*time.Second,
		"patience, and not a node timeout for each of 64 buckets as well")
}

// A listing stands a node that is late.
func TestALateAnswer(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, e2e.Timing(quiet), quorate.WithNodeTimeout(50*time.Millisecond))
	mutex.New(q, "m").Lock()
	require.NoError(t, c.Node(0).Stop())
	resumed := make(chan error)
	time.AfterFunc(600*time.Millisecond, func() { resumed <- c.Node(0).Cont() })
	var listed []string
	for e, err := range inspect.Names(t.Context(), q, "") {
		require.NoError(t, err)
		listed = append(listed, e.Name)
	}
	require.NoError(t, <-resumed)
	assert.Equal(t, []string{"m"}, listed)
}

// A node that has listed the claims of a name, and not its record, has not
// said that nothing is recorded.
func TestARecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	once.New(q, "o").Do(func() {})
	node := c.Node(0).Client()
	keys, err := node.Keys(t.Context(), "*{o}*:r").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.NoError(t, node.Del(t.Context(), keys[0]).Err())
	require.NoError(t, node.LPush(t.Context(), keys[0], "x").Err())
	var listed []string
	for e, err := range inspect.Names(t.Context(), q, "") {
		require.NoError(t, err)
		listed = append(listed, e.Name)
	}
	assert.Equal(t, []string{"o"}, listed)
	_, err = inspect.Name(t.Context(), q, "o")
	assert.ErrorContains(t, err, "WRONGTYPE")
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	_, err := inspect.Name(t.Context(), q, "")
	assert.ErrorIs(t, err, quorate.ErrInvalid)
	_, err = quorate.Connect(t.Context(), c.URLs(), quorate.WithOwner("a b"))
	assert.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "WithOwner")
	require.NoError(t, q.Close())
	_, err = inspect.Name(t.Context(), q, "m")
	assert.ErrorIs(t, err, quorate.ErrClosed)
	for _, err := range inspect.Names(t.Context(), q, "") {
		assert.ErrorIs(t, err, quorate.ErrClosed)
	}
}
