package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/mutex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, n int) *Nodes {
	t.Helper()
	ns, err := Start(n)
	require.NoError(t, err)
	t.Cleanup(ns.Close)
	return ns
}

// connect is another process, for all that the nodes can tell.
func connect(t *testing.T, ns *Nodes, opts ...quorate.Option) *quorate.Quorum {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	q, err := quorate.Connect(ctx, ns.URLs(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestExclusion(t *testing.T) {
	ns := start(t, 3)
	a, b := mutex.New(connect(t, ns), "x"), mutex.New(connect(t, ns), "x")
	require.NoError(t, a.LockContext(within(t, 2*time.Second)), "brand-new, yet no guard time to wait for")
	first := a.Lease().Token()
	require.ErrorIs(t, b.TryLockContext(t.Context()), quorate.ErrHeld)
	a.Unlock()
	require.NoError(t, b.LockContext(within(t, 2*time.Second)))
	assert.Greater(t, b.Lease().Token(), first)
	require.NoError(t, b.UnlockContext(t.Context()))
}

// A push wakes the next in the queue: it is in long before its next beat, ttl/3
// later.
func TestPushWakesUp(t *testing.T) {
	ns := start(t, 3)
	a, b := mutex.New(connect(t, ns), "x"), mutex.New(connect(t, ns), "x")
	var waits []time.Duration
	for range 5 {
		require.NoError(t, a.LockContext(within(t, 2*time.Second)))
		in := make(chan error, 1)
		go func() { in <- b.LockContext(within(t, 5*time.Second)) }()
		require.Eventually(t, func() bool {
			h, err := a.Holder(t.Context())
			return err == nil && h.Waiters == 1
		}, 2*time.Second, 2*time.Millisecond)
		began := time.Now()
		a.Unlock()
		require.NoError(t, <-in)
		waits = append(waits, time.Since(began))
		require.NoError(t, b.UnlockContext(t.Context()))
	}
	t.Logf("hand-overs: %v", waits)
	for _, w := range waits {
		assert.Less(t, w, time.Second)
	}
}

// Keys go by themselves, and not before their time.
func TestClockRuns(t *testing.T) {
	ns := start(t, 1)
	o, err := redis.ParseURL(ns.URLs()[0])
	require.NoError(t, err)
	c := redis.NewClient(o)
	defer func() { assert.NoError(t, c.Close()) }()
	const ttl = 200 * time.Millisecond
	began := time.Now()
	require.NoError(t, c.Set(t.Context(), "k", "v", ttl).Err())
	require.Eventually(t, func() bool { return c.Exists(t.Context(), "k").Val() == 0 },
		5*time.Second, time.Millisecond)
	assert.GreaterOrEqual(t, time.Since(began), ttl-2*time.Millisecond)
	now, err := c.Time(t.Context()).Result()
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), now, time.Second)
}

// A holder that no longer renews loses the lock, and the next one gets it.
func TestLeaseEnds(t *testing.T) {
	const ttl = time.Second
	ns := start(t, 3)
	a := mutex.New(connect(t, ns, quorate.WithTTL(ttl)), "x", quorate.WithoutRenewal())
	b := mutex.New(connect(t, ns, quorate.WithTTL(ttl)), "x")
	began := time.Now()
	require.NoError(t, a.LockContext(within(t, 2*time.Second)))
	held := a.Lease().Context()
	require.NoError(t, b.LockContext(within(t, 5*time.Second)))
	// The holder gives up 1% + 2 ms before its nodes do.
	assert.GreaterOrEqual(t, time.Since(began), ttl-3*ttl/100-2*time.Millisecond)
	assert.ErrorIs(t, context.Cause(held), quorate.ErrLost)
	require.ErrorIs(t, a.UnlockContext(t.Context()), quorate.ErrLost)
	require.NoError(t, b.UnlockContext(t.Context()))
}

func TestStopAndRestart(t *testing.T) {
	ns := start(t, 3)
	m := mutex.New(connect(t, ns), "x")
	ns.Stop(0)
	require.NoError(t, m.LockContext(within(t, 2*time.Second)), "two of three are a majority")
	require.NoError(t, m.UnlockContext(t.Context()))
	ns.Stop(1)
	err := m.LockContext(within(t, 500*time.Millisecond))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, ns.Restart(1))
	require.NoError(t, m.LockContext(within(t, 5*time.Second)), "it has its memory still: no guard time")
	require.NoError(t, m.UnlockContext(t.Context()))
}

func TestCheck(t *testing.T) {
	ns := start(t, 3)
	r, err := connect(t, ns).Check(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, r.Ready)
	for _, n := range r.Nodes {
		assert.Equal(t, "master", n.Role)
		assert.Equal(t, "noeviction", n.Eviction)
		assert.Empty(t, n.Warnings)
		assert.Less(t, n.Offset.Abs(), time.Second)
	}
}

func TestBadStart(t *testing.T) {
	_, err := Start(0)
	require.Error(t, err)
	ns := start(t, 1)
	_, err = StartAt(1, ns.nodes[0].redis.Server().Addr().Port)
	require.Error(t, err)
}

// A pattern that miniredis would panic at is refused. The others are answered.
func TestPatterns(t *testing.T) {
	ns := start(t, 3)
	q := connect(t, ns, quorate.WithLogger(nil))
	m := mutex.New(q, "ab")
	require.NoError(t, m.LockContext(within(t, 2*time.Second)))
	list := func(pattern string) (names []string, err error) {
		for e, failed := range inspect.Names(within(t, 5*time.Second), q, pattern) {
			if err = failed; err == nil {
				names = append(names, e.Name)
			}
		}
		return names, err
	}
	for _, pattern := range []string{"[z-a]b", `[\p]b`, "[z-a", "[[:x:]b", "\xff", `\\[z-a]`} {
		_, err := list(pattern)
		require.ErrorContains(t, err, "does not support such a pattern", pattern)
	}
	for _, pattern := range []string{"*", "", "a?", "[a-z]b", "[^z]*", `\a[b]`} {
		names, err := list(pattern)
		require.NoError(t, err, pattern)
		assert.Equal(t, []string{"ab"}, names, pattern)
	}
	names, err := list(`\[z-a]`)
	require.NoError(t, err)
	assert.Empty(t, names)
	m.Unlock()
}

// A node carries out our scripts only: another could read the files of the user
// who serves it, or never end.
func TestOtherScriptsAreRefused(t *testing.T) {
	ns, err := Start(1)
	require.NoError(t, err)
	defer ns.Close()
	o, err := redis.ParseURL(ns.URLs()[0])
	require.NoError(t, err)
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()
	for _, words := range [][]any{
		{"EVAL", "return loadfile('/etc/passwd')", "0"}, {"eval", "while true do end", "0"},
		{"SCRIPT", "LOAD", "return 1"}, {"script", "load", "return 1"},
	} {
		require.ErrorContains(t, c.Do(t.Context(), words...).Err(),
			"only the scripts of this version of quorate", "%q", words)
	}
	for _, s := range script.All() {
		require.NoError(t, c.ScriptLoad(t.Context(), s.Source).Err(), s.Name)
	}
}
