package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// A machine sleeps: its monotonic clock stands still, and its connections are
// gone when it wakes. Its client cannot tell that from nodes whose clocks were
// set, as long as it has reached few of them. It must not silence a node: an
// unrelated client keeps its lock, and the client that slept gets it
// afterwards.
func TestClientThatSlept(t *testing.T) {
	t.Parallel()
	const ttl = 8 * time.Second
	for _, r := range []struct {
		nodes int
		slept time.Duration
	}{{1, 300 * time.Millisecond}, {3, time.Second}, {3, time.Hour}} {
		t.Run(fmt.Sprintf("%d nodes, %v", r.nodes, r.slept), func(t *testing.T) {
			c := redistest.Start(t, r.nodes, redistest.WithClock())
			// The nodes' clocks are set here, and the client's wall clock is
			// not: it must not count as wrong.
			guard := 2*ttl + 4*r.slept + time.Second
			e2e.Open(t, c, e2e.Guarded(ttl, guard))
			ways, urls := e2e.Proxies(t, c.URLs(), proxy.Fault{})
			w := startWorkerAt(t, urls, terms{Name: "m", TTL: ttl, Guard: guard})
			w.tell(t, "lock")
			w.held(t)
			w.tell(t, "unlock")
			require.Equal(t, "unlocked", w.answer(t))
			e2e.Clean(t, c)

			// All the nodes' clocks go on while the client's stands still.
			require.NoError(t, w.Stop())
			for i := range r.nodes {
				require.NoError(t, c.Node(i).SetClock(r.slept, 1))
			}
			for _, p := range ways {
				p.Hold()
				p.Reset()
			}
			before := incarnations(t, c)
			// This client knows no other time than the new one.
			other := mutex.New(e2e.OpenAt(t, c.URLs(), e2e.Guarded(ttl, guard)), "m")
			require.NoError(t, other.LockContext(deadline(t)))
			lease := other.Lease()

			w.tell(t, "lock")
			require.NoError(t, w.Continue())
			for i, p := range ways {
				p.Release() // the nodes come back one after the other
				require.True(t, e2e.Eventually(func() bool { return inLine(t, c.Node(i), "m") >= 2 }),
					"its claim reaches node %d", i)
			}
			assert.NoError(t, lease.Context().Err(), "the lock of an unrelated client")
			other.Unlock()
			w.held(t)
			assert.Equal(t, before, incarnations(t, c), "no node is silenced by the word of a client that slept")
		})
	}
}

// inLine is how many claims of name a server keeps, more than one.
func inLine(t *testing.T, s *redistest.Server, name string) int64 {
	n, err := s.Client().ZCard(t.Context(), "quorate:{"+name+"}:q").Result()
	require.NoError(t, err)
	return n
}

// incarnations are the nodes' own, by their markers.
func incarnations(t *testing.T, c *redistest.Cluster) (incs []string) {
	for i := range c.Len() {
		marker, err := c.Node(i).Client().Get(t.Context(), e2e.MarkerKey(t.Context(), c.Node(i))).Result()
		require.NoError(t, err)
		incs = append(incs, strings.Fields(marker)[0])
	}
	return incs
}
