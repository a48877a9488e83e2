package e2e_test

import (
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

// A node that gets a memory of before in one run of its server, by SWAPDB twice
// or behind an address that moves there and back, has forgotten what it did
// meanwhile. Its marker names that run. It must not vote before its guard time.
func TestMemoryOfBeforeInOneRun(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(ttl))
	swap := func() { require.NoError(t, c.Node(0).Client().Do(t.Context(), "SWAPDB", "0", "1").Err()) }
	swap()
	require.True(t, e2e.Eventually(func() bool { // it has got its place back, and votes
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == 3 && c.Node(0).Client().DBSize(t.Context()).Val() > 0
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
