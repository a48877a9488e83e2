package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/quorate/quorate"
	"github.com/quorate/quorate/mutex"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// ttl is every library's lease: what both quorate and redsync choose by
// default.
const ttl = 8 * time.Second

// library is one of those compared.
type library struct {
	name     string
	open     func(context.Context, nodes) (client, error)
	commands []string // that it sends; what its scripts call counts for them
	oneNode  bool     // it knows no quorum: it takes part where there is one node
	shares   bool     // the goroutines of a process can share one of its mutexes
	permits  bool     // it has a semaphore
}

// client is a library's connection to the nodes.
type client interface {
	Mutex(name string) locker
	Close()
}

// locker is one participant. Unlock waits until a majority has confirmed it,
// where the library can.
type locker interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// sharer is a locker that several may hold at once.
type sharer interface {
	share() (weight, room int64)
}

// errGaveUp is the error of a library that tries a number of times only.
var errGaveUp = errors.New("gave up")

// insist locks m. One that gives up tries again, and all of it is one wait.
func insist(ctx context.Context, m locker) error {
	for {
		if err := m.Lock(ctx); !errors.Is(err, errGaveUp) || ctx.Err() != nil {
			return err
		}
	}
}

// What the libraries send.
var (
	byScript = []string{"evalsha"}
	byBoth   = []string{"set", "evalsha"}
)

// quorateClient waits for the majority's confirmation of an unlock, as redsync
// does, or, async, does as Unlock does.
type quorateClient struct {
	q     *quorate.Quorum
	async bool
}

func openQuorate(async bool, opts ...quorate.Option) func(context.Context, nodes) (client, error) {
	return func(ctx context.Context, n nodes) (client, error) {
		q, err := connect(ctx, n, opts...)
		if err != nil {
			return nil, err
		}
		return &quorateClient{q, async}, nil
	}
}

func connect(ctx context.Context, n nodes, opts ...quorate.Option) (*quorate.Quorum, error) {
	opts = append([]quorate.Option{quorate.WithTTL(ttl), quorate.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	q, err := quorate.Connect(ctx, n.urls(), opts...)
	if err != nil {
		return nil, err
	}
	// On a machine that is busy new nodes may take longer than Bootstrap waits.
	for err = q.Bootstrap(ctx); errors.Is(err, quorate.ErrNoQuorum) && ctx.Err() == nil; err = q.Bootstrap(ctx) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (c *quorateClient) Close() { _ = c.q.Close() }

func (c *quorateClient) Mutex(name string) locker {
	m := mutex.New(c.q, name)
	if c.async {
		return asyncMutex{m}
	}
	return quorateMutex{m}
}

type quorateMutex struct{ m *mutex.Mutex }

func (m quorateMutex) Lock(ctx context.Context) error { return m.m.LockContext(ctx) }

func (m quorateMutex) Unlock(ctx context.Context) error { return confirmed(m.m.UnlockContext(ctx)) }

// confirmed is the outcome of an unlock that waits.
func confirmed(err error) error {
	if errors.Is(err, quorate.ErrNoQuorum) {
		return nil // released, but not confirmed in time: the wait counts
	}
	return err
}

type asyncMutex struct{ m *mutex.Mutex }

func (m asyncMutex) Lock(context.Context) error   { m.m.Lock(); return nil }
func (m asyncMutex) Unlock(context.Context) error { m.m.Unlock(); return nil }

type redsyncClient struct {
	clients  []*redis.Client
	rs       *redsync.Redsync
	failFast bool
}

func openRedsync(failFast bool) func(context.Context, nodes) (client, error) {
	return func(_ context.Context, n nodes) (client, error) {
		r := &redsyncClient{failFast: failFast, clients: lo.Map(n.addrs, newRedis)}
		r.rs = redsync.New(lo.Map(r.clients, func(c *redis.Client, _ int) redsyncredis.Pool { return goredis.NewPool(c) })...)
		return r, nil
	}
}

func (c *redsyncClient) Close() {
	for _, n := range c.clients {
		_ = n.Close()
	}
}

func (c *redsyncClient) Mutex(name string) locker {
	return &redsyncMutex{c: c, name: name, m: c.newMutex(name)}
}

func (c *redsyncClient) newMutex(name string) *redsync.Mutex {
	return c.rs.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithFailFast(c.failFast))
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
