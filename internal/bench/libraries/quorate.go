package libraries

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/mutex"
	"github.com/samber/lo"
)

// quorateClient waits until a majority has confirmed an unlock, as redsync
// does. If async is set, it does not wait, like Unlock.
type quorateClient struct {
	q     *quorate.Quorum
	async bool
}

// ClientOf returns the client of a connected Quorum.
func ClientOf(q *quorate.Quorum) Client { return &quorateClient{q: q} }

// OpenQuorate returns a function that opens a client of mutexes, given the
// options of its Quorum.
func OpenQuorate(async bool, opts ...quorate.Option) func(context.Context, servers.Nodes) (Client, error) {
	return func(ctx context.Context, n servers.Nodes) (Client, error) {
		q, err := Connect(ctx, n, opts...)
		if err != nil {
			return nil, err
		}
		return &quorateClient{q, async}, nil
	}
}

// Connect returns a Quorum whose nodes vote.
func Connect(ctx context.Context, n servers.Nodes, opts ...quorate.Option) (*quorate.Quorum, error) {
	return ConnectTo(ctx, lo.Map(n.Ways, func(way string, _ int) string { return "redis://" + way }), opts...)
}

// ConnectTo is Connect for nodes with these URLs.
func ConnectTo(ctx context.Context, urls []string, opts ...quorate.Option) (*quorate.Quorum, error) {
	opts = append([]quorate.Option{quorate.WithTTL(TTL), quorate.WithLogger(slog.New(slog.DiscardHandler))},
		opts...)
	q, err := quorate.Connect(ctx, urls, opts...)
	if err != nil {
		return nil, err
	}
	// On a busy machine new nodes may take longer than Bootstrap waits.
	for err = q.Bootstrap(ctx); errors.Is(err, quorate.ErrNoQuorum) && ctx.Err() == nil; err = q.Bootstrap(ctx) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (c *quorateClient) Close() { _ = c.q.Close() }

func (c *quorateClient) Mutex(name string) Locker {
	m := mutex.New(c.q, name)
	if c.async {
		return asyncMutex{m}
	}
	return quorateMutex{m}
}

type quorateMutex struct{ m *mutex.Mutex }

func (m quorateMutex) Lock(ctx context.Context) error { return m.m.LockContext(ctx) }

func (m quorateMutex) Unlock(ctx context.Context) error { return Confirmed(m.m.UnlockContext(ctx)) }

// Confirmed returns the outcome of an unlock that waits.
func Confirmed(err error) error {
	if errors.Is(err, quorate.ErrNoQuorum) {
		return nil // released, but not confirmed in time: the wait counts
	}
	return err
}

type asyncMutex struct{ m *mutex.Mutex }

func (m asyncMutex) Lock(context.Context) error   { m.m.Lock(); return nil }
func (m asyncMutex) Unlock(context.Context) error { m.m.Unlock(); return nil }
