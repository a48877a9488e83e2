package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/health"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/lateness"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

func TestFreshServersWaitForTheGuardTime(t *testing.T) {
	t.Parallel()
	// A busy machine asks three times, and answers late.
	const ttl, guard = 300 * time.Millisecond, 4 * time.Second
	late := lateness.Measure(t)
	c := redistest.Start(t, 3)
	var log e2e.Log
	began := time.Now()
	q := e2e.OpenAt(t, c.URLs(), e2e.Guarded(ttl, guard), log.Option())
	m := mutex.New(q, "m")
	var err error
	require.True(t, e2e.Eventually(func() bool { // the nodes have answered
		ctx, cancel := context.WithTimeout(t.Context(), guard/16)
		defer cancel()
		err = m.LockContext(ctx)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		return strings.Contains(err.Error(), "is new or lost its data, and votes in ")
	}), err)
	assert.ErrorIs(t, m.TryLockContext(t.Context()), quorate.ErrNoQuorum)
	_, err = q.Check(t.Context())
	assert.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, "is new or lost its data")

	var all sync.WaitGroup
	for _, name := range []string{"m", "n", "o"} { // one line, however many wait
		all.Go(func() {
			m := mutex.New(q, name)
			if assert.NoError(t, m.LockContext(deadline(t))) {
				m.Unlock()
			}
		})
	}
	all.Wait()
	assert.GreaterOrEqual(t, time.Since(began), guard)
	assert.Less(t, time.Since(began), guard+time.Second+late.Allow(12), "and not longer")
	lines := log.Lines("can vote")
	require.Len(t, lines, 1, "one line for one state")
	assert.Contains(t, lines[0], "new or without data; waiting for the guard time")
	assert.Contains(t, lines[0], "guard=4s")
	assert.Empty(t, log.Lines("WARN quorate: the nodes"))

	// A client that comes later does not wait.
	later := mutex.New(e2e.OpenAt(t, c.URLs(), e2e.Guarded(ttl, guard), log.Option()), "m")
	began = time.Now()
	later.Lock()
	assert.Less(t, time.Since(began), guard/2+late.Allow(12))
	later.Unlock()
	e2e.Clean(t, c)
}

// Check of brand-new nodes names the remedy. It is no remedy for a node that lost its data later.
func TestBrandNewNodesNameTheRemedy(t *testing.T) {
	const guard = time.Hour
	c := redistest.Start(t, 3)
	looks := e2e.Setting(func(s *setup.Settings) { s.LooksOnly = true }) // else they record their set meanwhile
	q := e2e.OpenAt(t, c.URLs(), e2e.Guarded(time.Second, guard), looks)
	remedy := func() bool {
		_, err := q.Check(t.Context())
		return err != nil && strings.Contains(err.Error(), `run "quorate bootstrap" or call Quorum.Bootstrap once`)
	}
	require.True(t, e2e.Eventually(remedy))

	require.NoError(t, q.Bootstrap(t.Context()))
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	var later e2e.Log
	e2e.OpenAt(t, c.URLs(), e2e.Guarded(time.Second, guard), later.Option())
	require.NoError(t, c.Node(0).Restart())
	require.True(t, e2e.Eventually(func() bool { return m.TryLockContext(t.Context()) == nil }),
		"a majority has its data")
	m.Unlock()
	require.True(t, e2e.Eventually(func() bool {
		report, err := q.Check(t.Context())
		return err == nil && report.Ready == 2
	}))
	assert.Empty(t, later.Lines("bootstrap"), "one node without its data is no reason to wait")
}

// Blank nodes come alive without a call that waits for them: under a program
// that only tries, under one that only asks whether it may serve, and after
// FLUSHALL of the only node.
func TestBlankNodesComeAliveByThemselves(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			timing := e2e.Guarded(400*time.Millisecond, time.Second)
			c := redistest.Start(t, nodes)
			m := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "m")
			tried := func() bool { return m.TryLockContext(deadline(t)) == nil }
			require.True(t, e2e.Eventually(tried), "with TryLock alone")
			m.Unlock()
			for i := range c.Len() {
				require.NoError(t, c.Node(i).Client().FlushAll(t.Context()).Err())
			}
			require.True(t, e2e.Eventually(tried), "after FLUSHALL")

			c = redistest.Start(t, nodes)
			ready := health.Ready(e2e.OpenAt(t, c.URLs(), timing))
			require.True(t, e2e.Eventually(func() bool {
				w := httptest.NewRecorder()
				ready.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				return w.Code == http.StatusOK
			}), "with health.Ready alone")
		})
	}
}

// A program that declares its nodes new right after Connect is in time.
func TestBootstrapAfterConnect(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q, err := quorate.Connect(deadline(t), c.URLs(),
		e2e.Guarded(time.Second, time.Hour), quorate.WithLogger(nil))
	require.NoError(t, err)
	defer q.Close()
	require.NoError(t, q.Bootstrap(deadline(t)))
	m := mutex.New(q, "m")
	require.NoError(t, m.TryLockContext(deadline(t)))
	m.Unlock()
}

func TestBootstrapSkipsTheGuardTime(t *testing.T) {
	t.Parallel()
	const guard = time.Hour
	c := redistest.Start(t, 3)
	timing := e2e.Guarded(time.Second, guard)
	var log e2e.Log
	earlier := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "m")
	q := e2e.OpenAt(t, c.URLs(), timing, log.Option())
	require.NoError(t, q.Bootstrap(deadline(t)))
	require.NoError(t, earlier.LockContext(deadline(t)), "a client that was there before votes at once, too")
	earlier.Unlock()
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	assert.Empty(t, log.Lines("level=ERROR"))
	report, err := q.Check(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, report.Ready)

	e2e.Clean(t, c)

	// It is for all that there are, or it fails.
	c = redistest.Start(t, 3)
	require.NoError(t, c.Node(0).Kill())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err = e2e.OpenAt(t, c.URLs(), timing).Bootstrap(ctx)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, c.Node(0).Addr())
}

// A server that keeps a log of its writes comes back with its marker, and waits
// for its guard time all the same, however often it syncs: the log cannot tell
// what was done while it was off.
func TestRestartWithAppendOnlyFile(t *testing.T) {
	t.Parallel()
	const ttl, guard = 500 * time.Millisecond, 6 * time.Second
	for _, policy := range []string{"everysec", "always"} {
		t.Run(policy, func(t *testing.T) {
			c := redistest.Start(t, 1, redistest.WithAOF(policy))
			timing := e2e.Guarded(ttl, guard)
			q := e2e.Open(t, c, timing)
			m := mutex.New(q, "m")
			m.Lock()
			lease := m.Lease()
			marker, err := c.Node(0).Client().Get(t.Context(), e2e.MarkerKey(t.Context(), c.Node(0))).Result()
			require.NoError(t, err)
			killed := time.Now()
			require.NoError(t, c.Node(0).Restart())
			_, err = c.Node(0).Client().Get(t.Context(), e2e.MarkerKey(t.Context(), c.Node(0))).Result()
			require.NoError(t, err, "the missing marker cannot be what tells")

			other := mutex.New(e2e.OpenAt(t, c.URLs(), timing), "m")
			e2e.Receive(t, lease.Context().Done())
			assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrLost)
			require.True(t, e2e.Eventually(func() bool {
				now, err := c.Node(0).Client().Get(t.Context(), e2e.MarkerKey(t.Context(), c.Node(0))).Result()
				return err == nil && now != marker
			}))
			err = other.TryLockContext(t.Context())
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			require.NoError(t, other.LockContext(deadline(t)))
			assert.GreaterOrEqual(t, time.Since(killed), guard)
			m.Unlock()
			other.Unlock()
			e2e.Clean(t, c)
		})
	}
}

// A server whose append-only file was off for a while comes back with the file
// from before, whose marker says that all is well. The holder cannot reach it
// any more.
func TestRestartWithFileOfBefore(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithAOF("always"))
	timing := e2e.Timing(5 * time.Second)
	e2e.Open(t, c, timing)
	node := c.Node(1)
	require.NoError(t, node.Client().ConfigSet(t.Context(), "appendonly", "no").Err())
	p := e2e.OpenAt(t, []string{c.Node(0).URL(), node.URL(), "redis://127.0.0.1:1"}, timing)
	m := mutex.New(p, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	held := m.Lease()
	require.NoError(t, node.Restart())
	// So that the holder's renewals and the other's votes are these servers'.
	require.NoError(t, c.Node(0).Stop())
	other := mutex.New(e2e.OpenAt(t, []string{"redis://127.0.0.1:1", node.URL(), c.Node(2).URL()}, timing), "m")
	err := other.LockContext(deadline(t))
	require.NoError(t, err)
	assert.Error(t, held.Context().Err(), "the first holder's context has ended before")
	other.Unlock()
	require.NoError(t, c.Node(0).Cont())
}
