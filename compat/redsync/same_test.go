package redsync_test

import (
	"context"
	"errors"
	"testing"
	"time"

	theirs "github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ours "github.com/quorate/quorate/compat/redsync"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// locker is what both mutexes are.
type locker interface {
	Name() string
	Value() string
	Until() time.Time
	TryLock() error
	TryLockContext(ctx context.Context) error
	Lock() error
	LockContext(ctx context.Context) error
	Unlock() (bool, error)
	UnlockContext(ctx context.Context) (bool, error)
	Extend() (bool, error)
	ExtendContext(ctx context.Context) (bool, error)
	Valid() (bool, error)
	ValidContext(ctx context.Context) (bool, error)
}

var (
	_ locker = (*theirs.Mutex)(nil)
	_ locker = (*ours.Mutex)(nil)
)

// kind is one of the two packages.
type kind struct {
	lock                   func(expiry time.Duration, tries int, delay time.Duration) locker
	taken, failed, expired func(error) bool
}

// open opens the other package, on the same nodes.
func open(addrs []string) (rs *theirs.Redsync, closeAll func()) {
	var pools []redis.Pool
	var clients []*goredislib.Client
	for _, addr := range addrs {
		c := goredislib.NewClient(&goredislib.Options{Addr: addr})
		clients, pools = append(clients, c), append(pools, goredis.NewPool(c))
	}
	return theirs.New(pools...), func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}
}

// Callers see the same of both packages, on the same servers.
func TestSameAsRedsync(t *testing.T) {
	c := redistest.Start(t, 3)
	rs, closeAll := open(c.Addrs())
	defer closeAll()
	us := ours.New(e2e.Open(t, c))
	const name = "invoices"
	for of, k := range map[string]kind{
		"redsync": {
			lock: func(expiry time.Duration, tries int, delay time.Duration) locker {
				return rs.NewMutex(name, theirs.WithExpiry(expiry), theirs.WithTries(tries), theirs.WithRetryDelay(delay))
			},
			taken:   func(err error) bool { _, is := errors.AsType[*theirs.ErrTaken](err); return is },
			failed:  func(err error) bool { return errors.Is(err, theirs.ErrFailed) },
			expired: func(err error) bool { return errors.Is(err, theirs.ErrLockAlreadyExpired) },
		},
		"quorate": {
			lock: func(expiry time.Duration, tries int, delay time.Duration) locker {
				return us.NewMutex(name, ours.WithExpiry(expiry), ours.WithTries(tries), ours.WithRetryDelay(delay))
			},
			taken:   func(err error) bool { _, is := errors.AsType[*ours.ErrTaken](err); return is },
			failed:  func(err error) bool { return errors.Is(err, ours.ErrFailed) },
			expired: func(err error) bool { return errors.Is(err, ours.ErrLockAlreadyExpired) },
		},
	} {
		t.Run(of, func(t *testing.T) { k.tell(t, name) })
	}
	e2e.Clean(t, c)
}

// tell says what both packages do.
func (k *kind) tell(t *testing.T, name string) {
	const expiry, delay = 8 * time.Second, 20 * time.Millisecond
	a, b := k.lock(expiry, 1000, delay), k.lock(expiry, 1000, delay)
	assert.Equal(t, name, a.Name())
	assert.Empty(t, a.Value())
	assert.True(t, a.Until().IsZero())
	assert.False(t, first(a.Valid()))

	// A free name, and one that is taken.
	require.NoError(t, a.Lock())
	assert.NotEmpty(t, a.Value())
	assert.WithinRange(t, a.Until(), time.Now(), time.Now().Add(expiry))
	assert.True(t, first(a.Valid()))
	taken := func(try func() error) {
		require.True(t, e2e.Eventually(func() bool { // each node has answered
			err := try()
			require.Error(t, err)
			return k.taken(err)
		}))
	}
	taken(b.TryLock)
	began := time.Now()
	taken(k.lock(expiry, 4, delay).Lock)
	assert.GreaterOrEqual(t, time.Since(began), 3*delay, "it waits")
	ctx, cancel := context.WithTimeout(t.Context(), 2*delay)
	defer cancel()
	assert.True(t, k.failed(b.LockContext(ctx)), "the context ends")

	// It is extended, and passed on.
	before := a.Until()
	time.Sleep(2 * time.Millisecond)
	ok, err := a.Extend()
	require.True(t, ok, err)
	assert.True(t, a.Until().After(before))
	locked := make(chan error, 1)
	go func() { locked <- b.Lock() }()
	ok, err = a.Unlock()
	require.True(t, ok, err)
	require.NoError(t, e2e.Receive(t, locked))
	ok, err = a.Unlock()
	assert.False(t, ok, "it is not locked")
	require.Error(t, err)
	require.True(t, first(b.Unlock()))

	// A hold that expires.
	short := k.lock(200*time.Millisecond, 3, delay)
	require.NoError(t, short.Lock())
	require.True(t, e2e.Eventually(func() bool { ok, _ := short.Valid(); return !ok }))
	assert.False(t, time.Now().Before(short.Until()))
	require.NoError(t, a.Lock())
	ok, err = short.Extend()
	assert.False(t, ok)
	require.Error(t, err)
	ok, err = short.Unlock()
	assert.False(t, ok)
	require.Error(t, err)
	assert.True(t, first(a.Valid()), "it is not unlocked by another one")
	assert.True(t, first(a.Unlock()))
	require.NoError(t, short.Lock(), "it can be locked again")
	require.True(t, e2e.Eventually(func() bool { ok, _ := short.Valid(); return !ok }))
	require.NoError(t, a.Lock())
	require.True(t, first(a.Unlock()))
	ok, err = short.Unlock()
	assert.False(t, ok)
	assert.True(t, k.expired(err), err)
}

func first(ok bool, _ error) bool { return ok }
