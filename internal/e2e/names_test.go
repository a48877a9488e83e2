package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// The name of a mutex is a key, so a user that chooses names chooses keys. Each
// key by which nodes are looked after has a brace, and no name has one.
func TestNamesThatAreKeysOfOurs(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q := e2e.Open(t, c)
	err := mutex.New(q, "quorate:{}:set").LockContext(deadline(t))
	require.ErrorIs(t, err, quorate.ErrInvalid)
	assert.ErrorContains(t, err, "choose another separator")
	for _, name := range []string{"marker", "set", "quorate:push", "quorate:marker", "quorate:set"} {
		m := mutex.New(q, name)
		require.NoError(t, m.LockContext(deadline(t)), name)
		require.NoError(t, m.UnlockContext(deadline(t)))
	}
	e2e.Clean(t, c)
}

// Another client's key of that name, kept for longer than any lease lasts,
// is a lock that is held, and not an error.
func TestForeignKeyThatStaysForLong(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(2*time.Second))
	m := mutex.New(q, "m")
	for _, stays := range []time.Duration{60 * 24 * time.Hour, 100 * 365 * 24 * time.Hour, 0} {
		for i := range 3 {
			require.NoError(t, c.Node(i).Client().Set(t.Context(), "m", "a session", stays).Err())
		}
		err := m.TryLockContext(deadline(t))
		require.ErrorIs(t, err, quorate.ErrHeld, "%v", stays)
		require.ErrorContains(t, err, "another library holds the key of that name")
		h, err := m.Holder(deadline(t))
		require.NoError(t, err)
		assert.True(t, h.Foreign)
		assert.Positive(t, h.Left)
	}
	for i := range 3 {
		require.NoError(t, c.Node(i).Client().Del(t.Context(), "m").Err())
	}
	require.NoError(t, m.LockContext(deadline(t)))
	require.NoError(t, m.UnlockContext(deadline(t)))
	e2e.Clean(t, c)
}

// A lock of symfony/lock is a sorted set at the name, one of Redisson a hash,
// and both expire. Each is a holder like any other, also to a claim that waits
// behind one of ours. Such a key that never expires is a program's data.
func TestLockOfAnotherType(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	node := c.Node(0).Client()
	q := e2e.Open(t, c, e2e.Timing(600*time.Millisecond))
	m, other := mutex.New(q, "m"), mutex.New(q, "m")
	for _, put := range []func() error{
		func() error { return node.ZAdd(t.Context(), "m", redis.Z{Score: 1, Member: "token"}).Err() },
		func() error { return node.HSet(t.Context(), "m", "client:1", 1).Err() },
	} {
		require.NoError(t, put())
		require.ErrorContains(t, m.LockContext(deadline(t)), "WRONGTYPE", "a program's data")
		require.NoError(t, node.Expire(t.Context(), "m", time.Hour).Err())
		err := m.TryLockContext(deadline(t))
		require.ErrorIs(t, err, quorate.ErrHeld)
		require.ErrorContains(t, err, "another library holds the key of that name")
		h, err := m.Holder(deadline(t))
		require.NoError(t, err)
		assert.True(t, h.Foreign)
		got := make(chan error, 2)
		for _, m := range []*mutex.Mutex{m, other} {
			go func() { got <- m.Do(deadline(t), func(context.Context) error { return nil }) }()
		}
		require.True(t, e2e.Eventually(func() bool { return node.ZCard(t.Context(), "quorate:{m}:q").Val() == 2 }),
			"both wait")
		require.NoError(t, node.Del(t.Context(), "m").Err())
		for range 2 {
			require.NoError(t, e2e.Receive(t, got))
		}
		require.True(t, e2e.Eventually(func() bool { return node.Exists(t.Context(), "m").Val() == 0 }),
			"both releases arrived")
	}
	e2e.Clean(t, c)
}

// A name that looks like an answer of the server stays inside the one that
// tells of it.
func TestNameInAnAnswer(t *testing.T) {
	t.Parallel()
	const name = "a\r\n+OK\r\n\x00:1\r\n"
	c := redistest.Start(t, 1)
	var log e2e.Log
	q := e2e.Open(t, c, e2e.Timing(2*time.Second), log.Option())
	key := "quorate:{" + name + "}"
	require.NoError(t, c.Node(0).Client().Set(t.Context(), key, "not ours", 0).Err())
	other := mutex.New(q, "another")
	require.NoError(t, other.LockContext(deadline(t)))
	err := mutex.New(q, name).LockContext(deadline(t))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.NoError(t, other.UnlockContext(deadline(t)))
	assert.Empty(t, log.Lines("down"), "the connection has stayed in step")
	require.NoError(t, c.Node(0).Client().Del(t.Context(), key).Err())
	m := mutex.New(q, name)
	require.NoError(t, m.LockContext(deadline(t)))
	require.NoError(t, m.UnlockContext(deadline(t)))
	e2e.Clean(t, c)
}

// The longest times there may be work: a new node says for how long it waits,
// and one that is ready is locked and unlocked.
func TestLongestSettings(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	longest := []quorate.Option{
		quorate.WithTTL(24 * time.Hour), quorate.WithGuard(720 * time.Hour), quorate.WithSkew(24 * time.Hour),
		quorate.WithRetention(87600 * time.Hour), quorate.WithMaxHold(1<<63 - 1), quorate.WithLinger(0),
	}
	fresh := mutex.New(e2e.OpenAt(t, redistest.Start(t, 1).URLs(), longest...), "m")
	var err error
	// Once it is connected; the first call that waits records the set.
	require.True(t, e2e.Eventually(func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		err = fresh.LockContext(ctx)
		return strings.Contains(err.Error(), "votes in 7")
	}), "%v", err)
	q := e2e.Open(t, c, longest...)
	a, b := mutex.New(q, "m"), mutex.New(q, "m")
	require.NoError(t, a.LockContext(deadline(t)))
	require.ErrorIs(t, b.TryLockContext(deadline(t)), quorate.ErrHeld)
	require.NoError(t, a.UnlockContext(deadline(t)))
	require.NoError(t, b.LockContext(deadline(t)))
	require.NoError(t, b.UnlockContext(deadline(t)))
	e2e.Clean(t, c)
}
