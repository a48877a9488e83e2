package e2e_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
)

// caughtUp waits until the node's marker says that it has been repaired.
func caughtUp(t *testing.T, n *redistest.Server) {
	t.Helper()
	require.True(t, e2e.Eventually(func() bool {
		return strings.HasSuffix(n.Client().Get(t.Context(), e2e.MarkerKey(t.Context(), n)).Val(), " w")
	}), "%s is not caught up", n.Addr())
}

// Servers without persistence are restarted one after the other, each when the
// one before is caught up. The only client that is connected holds a lock, and
// has never heard of a record. What Once has recorded stays recorded.
func TestLockHolderRepairsNodes(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(3 * time.Second) // a machine may stand still for a second
	first := e2e.Open(t, c, timing)
	once.New(first, "migration").Do(func() {})
	require.NoError(t, first.Close())

	holder := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "m")
	require.NoError(t, holder.LockContext(deadline(t)))
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Restart())
		caughtUp(t, c.Node(i))
	}
	require.NoError(t, holder.Lease().Context().Err())
	holder.Unlock()
	require.NoError(t, once.New(e2e.OpenAt(t, c.URLs(), timing),
		"migration").DoContext(deadline(t), func(context.Context) error {
		t.Error("the migration runs again")
		return nil
	}))
}

// Brand-new servers that have only been used for a lock lose one of them
// permanently: Once does not wait for it, as the other two are caught up.
func TestOnceAfterNewNodesServedLocks(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	timing := e2e.Timing(200 * time.Millisecond)
	m := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	for i := range c.Len() {
		caughtUp(t, c.Node(i))
	}
	require.NoError(t, c.Node(0).Stop())
	ran := false
	require.NoError(t, once.New(e2e.OpenAt(t, c.URLs(), timing),
		"o").DoContext(deadline(t), func(context.Context) error {
		ran = true
		return nil
	}))
	assert.True(t, ran)
}

// Check says what to do about a node that cannot be repaired, and has nothing
// to say once the node that knows is back.
func TestCheckNamesTheRemedy(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithAOF("always"))
	e2e.Open(t, c, e2e.Timing(time.Second))
	require.NoError(t, c.Node(1).Kill())
	marker := c.Node(0).Client().Get(t.Context(), e2e.MarkerKey(t.Context(), c.Node(0))).Val()
	require.NoError(t, c.Node(0).Client().Set(t.Context(), e2e.MarkerKey(t.Context(), c.Node(0)),
		strings.TrimSuffix(marker, " w"), 0).Err())
	q := e2e.OpenAt(t, c.URLs(), e2e.Timing(time.Second))
	require.True(t, e2e.Eventually(func() bool { // the other client may be at it still
		report, err := q.Check(deadline(t))
		return err == nil && len(report.Nodes[0].Warnings) == 1 &&
			strings.Contains(report.Nodes[0].Warnings[0], "quorate members replace")
	}))
	require.NoError(t, c.Node(1).Restart())
	caughtUp(t, c.Node(0))
	var warnings []string
	// A busy machine reads a clock late, and takes it for one that differs.
	assert.True(t, e2e.Eventually(func() bool {
		report, err := q.Check(deadline(t))
		require.NoError(t, err)
		warnings = report.Nodes[0].Warnings
		return len(warnings) == 0
	}), "%q", warnings)
}

// A node that was another one's replica has that one's marker, which says that
// the node votes. Check does not count it before its guard time has begun and
// ended.
func TestCheckAfterANodeWasAReplica(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, quorate.WithGuard(time.Hour), quorate.WithRetention(time.Hour))
	host, port, err := net.SplitHostPort(c.Node(2).Addr())
	require.NoError(t, err)
	require.NoError(t, c.Node(2).Client().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	require.NoError(t, c.Node(1).Client().Do(t.Context(), "REPLICAOF", host, port).Err())
	require.True(t, e2e.Eventually(func() bool {
		return c.Node(1).Client().InfoMap(t.Context(),
			"replication").Item("Replication", "master_link_status") == "up"
	}))
	require.NoError(t, c.Node(1).Client().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	report, err := q.Check(deadline(t))
	require.NoError(t, err)
	assert.Equal(t, 2, report.Ready)
}

// Where a user may not ask INFO, a node has no vote, and Check says so.
func TestCheckWithoutInfo(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	e2e.Open(t, c)
	require.NoError(t, c.Node(0).Client().Do(t.Context(), "ACL", "SETUSER", "default", "-info").Err())
	q := e2e.OpenAt(t, c.URLs())
	require.True(t, e2e.Eventually(func() bool {
		report, err := q.Check(deadline(t))
		return err == nil && report.Ready == 2 && report.Nodes[0].Err != nil &&
			strings.Contains(report.Nodes[0].Err.Error(), "+info")
	}))
}

func TestCheckAfterClose(t *testing.T) {
	t.Parallel()
	q := e2e.Open(t, redistest.Start(t, 1))
	require.NoError(t, q.Close())
	_, err := q.Check(t.Context())
	require.ErrorIs(t, err, quorate.ErrClosed)
	assert.NotErrorIs(t, err, quorate.ErrNoQuorum)
}
