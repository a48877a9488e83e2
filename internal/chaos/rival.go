package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// rivalWork tries for a name by redsync, and holds it for a while. It does not
// extend a hold; one that lasts for longer than the expiry is over by redsync's
// own Until.
//
// Each try has a mutex, and so a value, of its own: redsync gives all tries of
// one call the same value, and the release of an earlier try that comes late
// ends the hold of a later one. That would be redsync's fault alone, and make
// holds look valid that are not.
type rivalWork struct {
	rs   *redsync.Redsync
	name string // of the operations
	key  string // that is taken
	ttl  time.Duration
}

func openRival(e *clientEnv, name string) work {
	pools := lo.Map(e.clients, func(c redis.UniversalClient, _ int) redsyncredis.Pool { return goredis.NewPool(c) })
	w := rivalWork{redsync.New(pools...), name, name, e.TTL}
	if e.Control == controlRival {
		w.key = "other-" + name
	}
	return w
}

// rivalKey begins the value of each key that a rival sets.
const rivalKey = "rival-"

// do is silent about tries that fail: it polls.
func (w rivalWork) do(ctx context.Context, t *turn) {
	if t.calm {
		return
	}
	m := w.rs.NewMutex(w.key, redsync.WithExpiry(w.ttl), redsync.WithTries(1), redsync.WithTimeoutFactor(0.25),
		redsync.WithGenValueFunc(func() (string, error) { return rivalKey + rand.Text(), nil }))
	from := now()
	if m.TryLockContext(ctx) != nil {
		return
	}
	op := t.log.callAt(from, event{Kind: t.kind, Name: t.name, Weight: 1})
	lease := untilLease{m}
	t.begin(op, lease)
	t.stay(op, lease)
	t.end(op, lease, func() error {
		_, _ = m.UnlockContext(context.WithoutCancel(ctx))
		return nil
	})
}

// connectRival is a client as redsync needs it: one whose requests end with
// their context.
func connectRival(o *redis.Options) *redis.Client {
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1
	return redis.NewClient(o)
}
