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
// On a busy machine some waiters were not woken although the lock was free:
// with NoLoopTracking, and without it with the default TryNextAfter of 20 ms.
// So NoLoopTracking is off, and an attempt may take a second. There is no next
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
	ctx    context.Context // nolint:containedctx // the context is the lock: both end together
	unlock func()
}

// rueidisPatience is much longer than any wait in these benches. A client that
// waits longer counts as not woken.
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

// Unlock waits until the key is deleted, because rueidislock's cancel does.
func (m *rueidisMutex) Unlock(context.Context) error {
	err := m.ctx.Err() // already lost
	m.unlock()
	return err
}

// bsmPoll is the polling interval of bsm/redislock, which its user must choose.
// Its examples use 100 ms and 500 ms. An interval as short as the holds in
// these benches gives it a much better rate, at the cost of more requests.
const bsmPoll = 10 * time.Millisecond

// bsmClient is bsm/redislock, configured to retry until its context ends.
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
	m.held, err = m.c.Obtain(ctx, m.name, TTL,
		&redislock.Options{RetryStrategy: redislock.LinearBackoff(bsmPoll)})
	return err
}

func (m *bsmMutex) Unlock(ctx context.Context) error { return m.held.Release(ctx) }

// syncClient is package sync, for goroutines of a single process.
type syncClient struct{}

func openSync(context.Context, servers.Nodes) (Client, error) { return syncClient{}, nil }

func (syncClient) Close()              {}
func (syncClient) Mutex(string) Locker { return &syncMutex{} }

type syncMutex struct{ m sync.Mutex }

func (m *syncMutex) Lock(context.Context) error   { m.m.Lock(); return nil }
func (m *syncMutex) Unlock(context.Context) error { m.m.Unlock(); return nil }
