package e2e_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// alias is another address of a server.
func alias(t *testing.T, s *redistest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	return "localhost:" + port
}

// withoutInfo makes a user of each server that may not use INFO.
func withoutInfo(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-info").Err())
	}
}

// One server under two addresses has one vote, with and without INFO: while
// another client holds with the two other servers, no other client does.
func TestOneServerUnderTwoAddresses(t *testing.T) {
	t.Parallel()
	for _, info := range []bool{true, false} {
		t.Run(fmt.Sprintf("info=%t", info), func(t *testing.T) {
			c := redistest.Start(t, 3)
			user := ""
			if withoutInfo(t, c); !info {
				user = "app:secret@"
			}
			at := func(addrs ...string) (urls []string) {
				for _, a := range addrs {
					urls = append(urls, "redis://"+user+a)
				}
				return urls
			}
			first, second, third := c.Node(0), c.Node(1), c.Node(2)
			all := e2e.OpenAt(t, at(c.Addrs()...), e2e.Timing(20*time.Second))
			require.NoError(t, all.Bootstrap(deadline(t)))
			holder := mutex.New(e2e.OpenAt(t, at("127.0.0.1:1", second.Addr(), third.Addr()), e2e.Timing(20*time.Second)), "m")
			require.NoError(t, holder.LockContext(deadline(t)))

			var log e2e.Log
			urls := at(first.Addr(), alias(t, first), third.Addr())
			q := e2e.OpenAt(t, urls, e2e.Timing(20*time.Second), log.Option())
			m := mutex.New(q, "m")
			refused := "is the same server as "
			var r quorate.Report
			require.True(t, e2e.Eventually(func() bool {
				err := m.TryLockContext(t.Context())
				require.Error(t, err, "one server has voted twice")
				r, _ = q.Check(t.Context())
				return r.Ready == 2 && slices.ContainsFunc(r.Nodes, func(n quorate.NodeReport) bool {
					return n.Err != nil && strings.Contains(n.Err.Error(), refused)
				})
			}))
			dup := 0
			for _, n := range r.Nodes {
				if n.Err != nil {
					dup++
					assert.ErrorContains(t, n.Err, refused)
					both := n.Err.Error() + n.Node
					assert.True(t, strings.Contains(both, first.Addr()) && strings.Contains(both, "localhost"), both)
				}
			}
			assert.Equal(t, 1, dup)
			require.ErrorIs(t, m.TryLockContext(t.Context()), quorate.ErrHeld)

			// Nor does the other address get a vote by being the first to come
			// back.
			for range 3 {
				require.NoError(t, first.Client().Do(t.Context(), "CLIENT", "KILL", "SKIPME", "yes").Err())
				require.True(t, e2e.Eventually(func() bool {
					require.Error(t, m.TryLockContext(t.Context()))
					r, _ := q.Check(t.Context())
					return r.Ready == 2
				}))
			}
			holder.Unlock()
			require.NoError(t, m.LockContext(deadline(t)), "two servers are enough")
			m.Unlock()
			assert.NotEmpty(t, log.Lines("two nodes are the same server"))
		})
	}
}

// Connect refuses such addresses, if it has heard by then.
func TestConnectToOneServerUnderTwoAddresses(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	node := c.Node(0)
	q, err := quorate.Connect(deadline(t), []string{node.URL(), "redis://" + alias(t, node), "redis://127.0.0.1:1"}, quorate.WithLogger(nil))
	if err == nil {
		_ = q.Close()
	}
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, node.Addr())
	assert.ErrorContains(t, err, alias(t, node))
}
