package main

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/quorate/quorate"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// redsyncWork is the same work with redsync, under the same faults: a control.
// It is used as it is meant to be: the expiry is our ttl, all else is its
// default. A hold is judged by its Until, and none is meant to last for more
// than half of that, so that it needs no Extend.
type redsyncWork struct {
	rs   *redsync.Redsync
	name string
	ttl  time.Duration
}

func openRedsync(e *clientEnv, name string) work {
	pools := lo.Map(e.clients, func(c redis.UniversalClient, _ int) redsyncredis.Pool { return goredis.NewPool(c) })
	return redsyncWork{redsync.New(pools...), name, e.TTL}
}

func (w redsyncWork) do(ctx context.Context, t *turn) {
	t.most = w.ttl / 2
	m := w.rs.NewMutex(w.name, redsync.WithExpiry(w.ttl))
	op, ok := t.ask(ctx, 1, m.LockContext)
	if !ok {
		return
	}
	lease := untilLease{m}
	t.begin(op, lease)
	t.use(op, lease, true)
	t.end(op, lease, func() error {
		// What it says of an unlock that came too late or found too few nodes
		// is its own affair.
		_, _ = m.UnlockContext(context.WithoutCancel(ctx))
		return nil
	})
}

// untilLease is what redsync knows of a hold: no token, and no context.
type untilLease struct{ m *redsync.Mutex }

func (untilLease) Token() uint64            { return 0 }
func (untilLease) Context() context.Context { return context.Background() }
func (untilLease) Wanted() <-chan struct{}  { return nil }
func (l untilLease) ValidUntil() time.Time  { return l.m.Until() }

var _ quorate.Lease = untilLease{}
