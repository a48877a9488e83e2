package client

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// redsyncWork does the same work with redsync under the same faults, as a
// control. It uses redsync as intended: the expiry is our ttl, everything else
// is the default. A hold is judged by redsync's Until. Holds last at most half
// of the expiry, so they need no Extend.
type redsyncWork struct {
	rs   *redsync.Redsync
	name string
	ttl  time.Duration
}

func openRedsync(e *Env, name string) work {
	pools := lo.Map(e.clients, func(c redis.UniversalClient,
		_ int) redsyncredis.Pool {
		return goredis.NewPool(c)
	})
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
		// Whether redsync reports an unlock that came too late or reached too
		// few nodes is not judged here.
		_, _ = m.UnlockContext(context.WithoutCancel(ctx))
		return nil
	})
}

// untilLease is a redsync hold as a Lease: without a token and without a
// context.
type untilLease struct{ m *redsync.Mutex }

func (untilLease) Token() uint64            { return 0 }
func (untilLease) Context() context.Context { return context.Background() }
func (untilLease) Wanted() <-chan struct{}  { return nil }
func (l untilLease) ValidUntil() time.Time  { return l.m.Until() }

var _ quorate.Lease = untilLease{}

// rivalWork tries to lock a name with redsync, and holds it for a while. It
// does not extend holds: a hold that lasts longer than the expiry has ended by
// redsync's own Until.
//
// Each try uses a new mutex, and so a new value. redsync gives all tries of one
// call the same value, so a late release of an earlier try can end the hold of
// a later one. That fault is redsync's alone, and it would make holds look
// valid that are not.
type rivalWork struct {
	rs   *redsync.Redsync
	name string // kind of the operations
	key  string // the key to lock
	ttl  time.Duration
}

func openRival(e *Env, name string) work {
	pools := lo.Map(e.clients, func(c redis.UniversalClient,
		_ int) redsyncredis.Pool {
		return goredis.NewPool(c)
	})
	w := rivalWork{redsync.New(pools...), name, name, e.TTL}
	if e.Control == ControlRival {
		w.key = "other-" + name
	}
	return w
}

// RivalKey is the prefix of the value of each key that a rival sets.
const RivalKey = "rival-"

// do does not log tries that fail, because it polls.
func (w rivalWork) do(ctx context.Context, t *turn) {
	if t.calm {
		return
	}
	m := w.rs.NewMutex(w.key, redsync.WithExpiry(w.ttl), redsync.WithTries(1),
		redsync.WithTimeoutFactor(0.25),
		redsync.WithGenValueFunc(func() (string, error) { return RivalKey + rand.Text(), nil }))
	from := record.Now()
	if m.TryLockContext(ctx) != nil {
		return
	}
	op := t.log.CallAt(from, record.Event{Kind: t.kind, Name: t.name, Weight: 1})
	lease := untilLease{m}
	t.begin(op, lease)
	t.stay(op, lease)
	t.end(op, lease, func() error {
		_, _ = m.UnlockContext(context.WithoutCancel(ctx))
		return nil
	})
}
