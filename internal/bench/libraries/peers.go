package libraries

import (
	"context"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/quorate/quorate/internal/bench/servers"
)

// These two have no quorum of independent nodes, so they are compared on one
// node. (rueidislock's majority is of keys, by default two of three on one
// Redis.)

// rueidisClient is rueidislock with one key for a lock, as there is one node.
// On a busy machine waiters were seen not to be woken up though the lock was
// free, with NoLoopTracking, and without it with the default TryNextAfter of 20
// ms. So the former is off, and an attempt may take a second: there is no next
// key to try.
type rueidisClient struct{ l rueidislock.Locker }

func openRueidis(_ context.Context, n servers.Nodes) (Client, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: n.Ways},
		KeyMajority:  1,
		KeyValidity:  TTL,
		TryNextAfter: time.Second,
	})
	if err != nil {
		return nil, err
	}
	return rueidisClient{l}, nil
}

func (c rueidisClient) Close()                   { c.l.Close() }
func (c rueidisClient) Mutex(name string) Locker { return &rueidisMutex{l: c.l, name: name} }

type rueidisMutex struct {
	l      rueidislock.Locker
	name   string
	ctx    context.Context //nolint:containedctx // it is the lock: it ends with it
	unlock func()
}

// rueidisPatience is much longer than any wait is here. A client that waits
// longer counts as one that was not woken up.
const rueidisPatience = 2 * time.Second

func (m *rueidisMutex) Lock(ctx context.Context) error {
	waiting, stop := context.WithCancel(ctx)
	patience := time.AfterFunc(rueidisPatience, stop)
	held, unlock, err := m.l.WithContext(waiting, m.name)
	switch {
	case err == nil && patience.Stop():
		m.ctx, m.unlock = held, func() { unlock(); stop() }
		return nil
	case err == nil:
		unlock()
	}
	stop()
	if ctx.Err() == nil && waiting.Err() != nil {
		return errGaveUp
	}
	return err
}

// Unlock waits until the key is deleted: that is how its cancel works.
func (m *rueidisMutex) Unlock(context.Context) error {
	err := m.ctx.Err() // lost before
	m.unlock()
	return err
}

// bsmPoll is how often bsm/redislock is to ask, whose user must say. Its
// examples ask every 100 ms and every 500 ms. As often as a hold lasts here is
// much kinder to its rate, and costs requests.
const bsmPoll = 10 * time.Millisecond

// bsmClient is bsm/redislock, set to ask until its context ends.
type bsmClient struct {
	node *redis.Client
	c    *redislock.Client
}

func openBSM(_ context.Context, n servers.Nodes) (Client, error) {
	node := newRedis(n.Ways[0], 0)
	return bsmClient{node, redislock.New(node)}, nil
}

func (c bsmClient) Close()                   { _ = c.node.Close() }
func (c bsmClient) Mutex(name string) Locker { return &bsmMutex{c: c.c, name: name} }

type bsmMutex struct {
	c    *redislock.Client
	name string
	held *redislock.Lock
}

func (m *bsmMutex) Lock(ctx context.Context) (err error) {
	m.held, err = m.c.Obtain(ctx, m.name, TTL, &redislock.Options{RetryStrategy: redislock.LinearBackoff(bsmPoll)})
	return err
}

func (m *bsmMutex) Unlock(ctx context.Context) error { return m.held.Release(ctx) }

// syncClient is what goroutines use where there is but one process.
type syncClient struct{}

func openSync(context.Context, servers.Nodes) (Client, error) { return syncClient{}, nil }

func (syncClient) Close()              {}
func (syncClient) Mutex(string) Locker { return &syncMutex{} }

type syncMutex struct{ m sync.Mutex }

func (m *syncMutex) Lock(context.Context) error   { m.m.Lock(); return nil }
func (m *syncMutex) Unlock(context.Context) error { m.m.Unlock(); return nil }
