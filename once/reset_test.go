package once_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/once"
)

// recordKey is where a node has the record of o.
const recordKey = "quorate:{o}:r"

func TestReset(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	qs := fleet(t, c, 2, e2e.Timing(quiet))
	a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
	require.NoError(t, a.Reset(t.Context()), "nothing to undo")
	runs := 0
	f := func() { runs++ }
	a.Do(f)
	b.Do(f)
	first := status(t, a).Token
	require.NoError(t, a.Reset(t.Context()))
	assert.Equal(t, once.NotStarted, status(t, b).State)
	b.Do(f)
	assert.Equal(t, 1, runs, "what is known elsewhere stays known")
	a.Do(f)
	assert.Equal(t, 2, runs)
	assert.Greater(t, status(t, a).Token, first)

	// Not while it runs.
	require.NoError(t, a.Reset(t.Context()))
	w := newWork()
	runner := later(func() error { return a.DoContext(t.Context(), w.run) })
	e2e.Receive(t, w.began)
	ctx, cancel := context.WithCancel(t.Context())
	reset := later(func() error { return b.Reset(ctx) })
	waiters(t, b, 1)
	cancel()
	err := e2e.Receive(t, reset)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, quorate.ErrHeld)
	reset = later(func() error { return b.Reset(t.Context()) })
	waiters(t, b, 1)
	w.end <- nil
	require.NoError(t, e2e.Receive(t, runner))
	require.NoError(t, e2e.Receive(t, reset))
	assert.Equal(t, once.NotStarted, status(t, b).State)
}

// recorded waits until all nodes have a record of o.
func recorded(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	for i := range c.Len() {
		require.True(t, e2e.Eventually(func() bool {
			n, err := c.Node(i).Client().Exists(t.Context(), recordKey).Result()
			return err == nil && n == 1
		}), "server %d", i)
	}
}

// A server that was away during the Reset keeps the record of the work without
// end. So the others must keep the erasure longer than the retention.
func TestResetOutlivesTheRetention(t *testing.T) {
	t.Parallel()
	const retention = 1500 * time.Millisecond
	c := cluster(t)
	qs := fleet(t, c, 2, e2e.Timing(600*time.Millisecond), quorate.WithRetention(retention))
	a, b := once.New(qs[0], "o"), once.New(qs[1], "o")
	a.Do(func() {})
	recorded(t, c)
	require.NoError(t, c.Node(2).Stop())
	require.NoError(t, a.Reset(t.Context()))
	for i := range 2 { // by the servers' own clocks
		client := c.Node(i).Client()
		require.NoError(t, client.Set(t.Context(), "clock", "", retention+100*time.Millisecond).Err())
		require.True(t, e2e.Eventually(func() bool {
			n, err := client.Exists(t.Context(), "clock").Result()
			return err == nil && n == 0
		}))
		ttl, err := client.PTTL(t.Context(), recordKey).Result()
		require.NoError(t, err)
		assert.Equal(t, time.Duration(-1), ttl, "forever, as what it erases")
	}
	require.NoError(t, c.Node(2).Cont())
	require.NoError(t, c.Node(0).Stop())
	runs := 0
	b.Do(func() { runs++ })
	assert.Equal(t, 1, runs, "what was undone has come back")
	require.NoError(t, c.Node(0).Cont())
}

// What ends by itself needs to be known as erased for as long only; but
// another client may have recorded it for longer.
func TestResetOfWhatEnds(t *testing.T) {
	t.Parallel()
	const keep = 48 * time.Hour
	c := cluster(t)
	q := e2e.Open(t, c, e2e.Timing(quiet))
	ends := once.New(q, "o", once.KeepFor(keep))
	lives := func(least, most time.Duration) {
		t.Helper()
		for i := range c.Len() {
			var ttl time.Duration
			require.True(t, e2e.Eventually(func() bool { // a majority has it when Reset returns
				var err error
				ttl, err = c.Node(i).Client().PTTL(t.Context(), recordKey).Result()
				return err == nil && least <= ttl && ttl <= most
			}), "server %d: %v", i, ttl)
		}
	}
	require.NoError(t, ends.Reset(t.Context()))
	lives(keep-time.Hour, keep)
	ends.Do(func() {})
	require.NoError(t, ends.Reset(t.Context()))
	lives(keep-time.Hour, keep)
	for _, longer := range []*once.Once{once.New(q, "o"), once.New(q, "o", once.KeepFor(keep+1000*time.Hour))} {
		longer.Do(func() {})
		require.NoError(t, ends.Reset(t.Context()))
		lives(-1, -1)
	}
}

// A run that has come to nothing has nothing to erase.
func TestFailureErasesNothing(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, end := range map[string]func() error{
		"error":  func() error { return boom },
		"panic":  func() error { panic(boom) },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t)
			qs := fleet(t, c, 2, e2e.Timing(quiet))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				_ = once.New(qs[0], "o").DoContext(t.Context(), func(context.Context) error { return end() })
			}()
			e2e.Receive(t, ended)
			require.NoError(t, qs[0].Close(), "all that it had to say has been said")
			rec := record(t, qs[1])
			assert.False(t, rec.Exists)
			assert.Zero(t, rec.Token, "a client has recorded or erased something")
			runs := 0
			once.New(qs[1], "o").Do(func() { runs++ })
			assert.Equal(t, 1, runs)
		})
	}
}

// record is what the nodes have of o.
func record(t *testing.T, q *quorate.Quorum) core.Record {
	t.Helper()
	nodes := core.CoreOf(q)
	spec, err := nodes.NewSpec(core.Spec{Name: "o", Weight: 1, Capacity: 1,
		Set: core.Override(nodes, "test", []quorate.Option{})})
	require.NoError(t, err)
	rec, err := nodes.Register(spec).Read(t.Context())
	require.NoError(t, err)
	return rec
}
