package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/mutex"
)

var fence = regexp.MustCompile(`^([RS])\d+`)

// settle: two servers have given higher tickets than is proposed, and not the
// same. They are no farther ahead than half of the guard time: nodes refuse
// tickets beyond that.
func (u *tenant) settle(ctx context.Context, q *quorate.Quorum) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a, b := mutex.New(q, u.job("settle")), mutex.New(q, u.job("settle"))
	if err := a.LockContext(ctx); err != nil {
		return err
	}
	raise := func(by time.Duration) func(c *redis.Client) error {
		return func(c *redis.Client) error {
			key := u.name + ":{" + u.job("settle") + "}"
			for { // which a majority has written, at least
				state, err := c.Get(ctx, key).Result()
				if err == nil {
					t := strconv.FormatInt(time.Now().Add(by).UnixMicro(), 10)
					return c.Set(ctx, key, fence.ReplaceAllString(state, "${1}"+t), time.Minute).Err()
				}
				if err != redis.Nil || ctx.Err() != nil {
					return err
				}
			}
		}
	}
	if err := errors.Join(u.admin(raise(20*time.Second), 0), u.admin(raise(40*time.Second), 1)); err != nil {
		return err
	}
	turn, err := next(ctx, b)
	if err != nil {
		return err
	}
	return pass(ctx, a, b, turn)
}

// inspect: an operator lists the names, looks at one, and evicts its holder for
// the one that waits.
func (u *tenant) inspect(ctx context.Context, q *quorate.Quorum) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a, b := mutex.New(q, u.job("e")), mutex.New(q, u.job("e"))
	if err := a.LockContext(ctx); err != nil {
		return err
	}
	lease := a.Lease()
	turn, err := next(ctx, b)
	if err != nil {
		return err
	}
	listed := false
	for e, err := range inspect.Names(ctx, q, u.job("*")) {
		if err != nil {
			return err
		}
		listed = listed || e.Name == u.job("e")
	}
	r, err := inspect.Name(ctx, q, u.job("e"))
	switch {
	case err != nil:
		return err
	case !listed || len(r.Holders) != 1 || r.Holders[0].Token != lease.Token() || len(r.Waiters) != 1:
		return fmt.Errorf("listed %t, and seen %+v", listed, r)
	}
	if err := errors.Join(inspect.Evict(ctx, q, u.job("e"), lease.Token()), <-turn); err != nil {
		return err
	}
	<-lease.Context().Done()
	if err := context.Cause(lease.Context()); !errors.Is(err, quorate.ErrEvicted) {
		return fmt.Errorf("the hold should be evicted: %w", err)
	}
	if err := a.UnlockContext(ctx); !errors.Is(err, quorate.ErrLost) {
		return fmt.Errorf("the hold should be lost: %w", err)
	}
	return b.UnlockContext(ctx)
}
