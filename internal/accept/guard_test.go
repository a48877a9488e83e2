package accept_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/accept"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/mutex"
)

func TestFreshServersWaitForTheGuardTime(t *testing.T) {
	const ttl, guard = 300 * time.Millisecond, 1500 * time.Millisecond
	c := redistest.Start(t, 3)
	var log accept.Log
	began := time.Now()
	q := accept.OpenAt(t, c.URLs(), accept.Guarded(ttl, guard), log.Option())
	ctx, cancel := context.WithTimeout(t.Context(), guard/3)
	defer cancel()
	m := mutex.New(q, "m")
	err := m.LockContext(ctx)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, "is new or lost its memory, and votes in 1.")
	assert.ErrorIs(t, m.TryLockContext(t.Context()), quorate.ErrNoQuorum)
	_, err = q.Check(t.Context())
	assert.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, "is new or lost its memory")

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
	assert.Less(t, time.Since(began), guard+time.Second, "and not longer")
	lines := log.Lines("level=WARN")
	require.Len(t, lines, 1)
	for _, text := range []string{"lost their memory", "wait=1.", "guard=1.5s", " of=3", "Bootstrap ends the wait at once"} {
		assert.Contains(t, lines[0], text)
	}

	// Nobody who comes later waits.
	later := mutex.New(accept.OpenAt(t, c.URLs(), accept.Guarded(ttl, guard), log.Option()), "m")
	began = time.Now()
	later.Lock()
	assert.Less(t, time.Since(began), guard/2)
	later.Unlock()
	assert.Len(t, log.Lines("level=WARN"), 1)
	accept.Clean(t, c)
}

func TestBootstrapSkipsTheGuardTime(t *testing.T) {
	const guard = time.Hour
	c := redistest.Start(t, 3)
	timing := accept.Guarded(time.Second, guard)
	var log accept.Log
	waiting := mutex.New(accept.OpenAt(t, c.URLs(), timing), "m")
	done := make(chan error, 1)
	go func() { done <- waiting.LockContext(deadline(t)) }()
	q := accept.OpenAt(t, c.URLs(), timing, log.Option())
	require.NoError(t, q.Bootstrap(t.Context()))
	err, _ := within(t, accept.Patience, done)
	require.NoError(t, err, "who waits already is let in, too")
	waiting.Unlock()
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	m.Unlock()
	assert.Empty(t, log.Lines(""))
	report, err := q.Check(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, report.Ready)

	// It is for all that there are, or it fails.
	require.NoError(t, c.Node(0).Kill())
	err = q.Bootstrap(t.Context())
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.ErrorContains(t, err, c.Node(0).Addr())
	require.NoError(t, c.Node(0).Restart())
	accept.Clean(t, c)
}

// A server that keeps a log of its writes comes back with its marker, but only
// with fsync after every write does it come back with all it has promised.
func TestRestartWithAppendOnlyFile(t *testing.T) {
	const ttl, guard = 500 * time.Millisecond, 6 * time.Second
	for policy, waits := range map[string]bool{"everysec": true, "always": false} {
		t.Run(policy, func(t *testing.T) {
			c := redistest.Start(t, 1, redistest.WithAOF(policy))
			timing := accept.Guarded(ttl, guard)
			q := accept.Open(t, c, timing)
			m := mutex.New(q, "m")
			m.Lock()
			lease := m.Lease()
			marker, err := c.Node(0).Client().Get(t.Context(), "quorate:marker").Result()
			require.NoError(t, err)
			killed := time.Now()
			require.NoError(t, c.Node(0).Restart())
			kept, err := c.Node(0).Client().Get(t.Context(), "quorate:marker").Result()
			require.NoError(t, err, "the missing marker cannot be what tells")

			other := mutex.New(accept.OpenAt(t, c.URLs(), timing), "m")
			if waits {
				within(t, accept.Patience, lease.Context().Done())
				assert.ErrorIs(t, context.Cause(lease.Context()), quorate.ErrLost)
				require.True(t, accept.Eventually(func() bool {
					now, err := c.Node(0).Client().Get(t.Context(), "quorate:marker").Result()
					return err == nil && now != marker
				}))
				err := other.TryLockContext(t.Context())
				require.ErrorIs(t, err, quorate.ErrNoQuorum)
				require.NoError(t, other.LockContext(deadline(t)))
				assert.GreaterOrEqual(t, time.Since(killed), guard)
				m.Unlock()
			} else {
				assert.Equal(t, marker, kept)
				require.True(t, accept.Eventually(func() bool { // connected again
					err = other.TryLockContext(t.Context())
					return errors.Is(err, quorate.ErrHeld)
				}), "%v", err)
				require.NoError(t, lease.Context().Err(), "the holder has kept it")
				require.NoError(t, m.UnlockContext(t.Context()))
				require.NoError(t, other.LockContext(deadline(t)))
				assert.Less(t, time.Since(killed), guard)
			}
			other.Unlock()
			accept.Clean(t, c)
		})
	}
}
