package libraries

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"

	"github.com/quorate/quorate/internal/bench/servers"
)

type redsyncClient struct {
	clients  []*redis.Client
	rs       *redsync.Redsync
	failFast bool
}

func openRedsync(failFast bool) func(context.Context, servers.Nodes) (Client, error) {
	return func(_ context.Context, n servers.Nodes) (Client, error) {
		r := &redsyncClient{failFast: failFast, clients: lo.Map(n.Ways, newRedis)}
		r.rs = redsync.New(lo.Map(r.clients,
			func(c *redis.Client, _ int) redsyncredis.Pool { return goredis.NewPool(c) })...)
		return r, nil
	}
}

func (c *redsyncClient) Close() {
	for _, n := range c.clients {
		_ = n.Close()
	}
}

func (c *redsyncClient) Mutex(name string) Locker {
	return &redsyncMutex{c: c, name: name, m: c.newMutex(name)}
}

func (c *redsyncClient) newMutex(name string) *redsync.Mutex {
	return c.rs.NewMutex(name, redsync.WithExpiry(TTL), redsync.WithFailFast(c.failFast))
}

type redsyncMutex struct {
	c    *redsyncClient
	name string
	m    *redsync.Mutex
}

func (m *redsyncMutex) Lock(ctx context.Context) error {
	if m.c.failFast {
		// A fail-fast mutex must not be used twice: an unlock that is still on
		// its way to a slow node reads the value that the next lock writes.
		m.m = m.c.newMutex(m.name)
	}
	err := m.m.LockContext(ctx)
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken || errors.Is(err, redsync.ErrFailed) {
		return errGaveUp
	}
	return err
}

func (m *redsyncMutex) Unlock(ctx context.Context) error {
	ok, err := m.m.UnlockContext(ctx)
	if !ok {
		return errors.Join(errors.New("redsync: unlock failed"), err)
	}
	return nil
}

// newRedis returns the Redis client that the other libraries use for one node.
func newRedis(addr string, _ int) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }
