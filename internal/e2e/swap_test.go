package e2e_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A node that gets an old memory in one run of its server, by SWAPDB twice or
// behind an address that moves there and back, has forgotten what it did
// meanwhile. Its marker names that run. It must not vote before its guard time.
// It may have lost its data again and again in between.
func TestMemoryOfBeforeInOneRun(t *testing.T) {
	t.Parallel()
	for _, losses := range []int{1, 17} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			memoryOfBefore(t, losses)
		})
	}
}

func memoryOfBefore(t *testing.T, losses int) {
	const ttl = 2 * time.Second
	c := redistest.Start(t, 3)
	node := c.Node(0)
	q := e2e.Open(t, c, e2e.Timing(ttl))
	swap := func() { require.NoError(t, node.Client().Do(t.Context(), "SWAPDB", "0", "1").Err()) }
	swap()
	back := func(r quorate.Report) bool { return r.Nodes[0].Err == nil && e2e.Marker(t.Context(), node) != "" }
	for range losses - 1 {
		require.True(t,
			e2e.Eventually(func() bool { r, err := q.Check(t.Context()); return err == nil && back(r) }))
		require.NoError(t, node.Client().FlushDB(t.Context()).Err())
	}
	require.True(t, e2e.Eventually(func() bool { // it has got its place back, and votes
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == 3 && back(r)
	}))
	// The holder has nodes 0 and 1 only.
	proxies, via := e2e.Proxies(t, c.URLs(), proxy.Fault{})
	proxies[2].Hold()
	m := mutex.New(e2e.OpenAt(t, via, e2e.Timing(ttl)), "m")
	require.NoError(t, m.LockContext(deadline(t)))
	lease := m.Lease()
	other := mutex.New(q, "m")
	require.ErrorIs(t, other.TryLockContext(deadline(t)), quorate.ErrHeld)
	swap()
	require.NoError(t, other.LockContext(deadline(t)))
	assert.Error(t, lease.Context().Err(), "the first holder's context has ended before")
	other.Unlock()
}

// A node to which an old memory has come back may refuse to begin another
// incarnation, as it cannot write. It is asked for that again at times, on the
// connection that there is, until it does; also by a client that is idle.
func TestMemoryOfBeforeAtANodeThatCannotWrite(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	node := c.Node(0).Client()
	q := e2e.Open(t, c, e2e.Timing(2*time.Second))
	ready := func(n int) {
		require.True(t, e2e.Eventually(func() bool {
			r, err := q.Check(t.Context())
			return err == nil && r.Ready == n
		}))
	}
	swap := func(replicas string) {
		tx := node.TxPipeline()
		tx.Do(t.Context(), "SWAPDB", "0", "1")
		tx.ConfigSet(t.Context(), "min-replicas-to-write", replicas)
		_, err := tx.Exec(t.Context())
		require.NoError(t, err)
	}
	swap("0")
	ready(2)
	ready(3)
	swap("1")
	ready(2)
	connections := func() int {
		_, rest, _ := strings.Cut(node.Info(t.Context(), "stats").Val(), "total_connections_received:")
		n, err := strconv.Atoi(rest[:strings.IndexByte(rest, '\r')])
		require.NoError(t, err)
		return n
	}
	before := connections()
	time.Sleep(time.Second)
	assert.LessOrEqual(t, connections()-before, 2)
	require.NoError(t, node.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	ready(3)
}
