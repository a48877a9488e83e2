package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// tenant is a user of some servers with a prefix and names of its own, both
// beginning with its name, so that many can be tried on the same ones.
type tenant struct {
	name    string
	servers []*redistest.Server
}

// job is the name of one of its jobs.
func (u *tenant) job(what string) string { return u.name + "-job:" + what }

// options give a ttl so long that what is not pushed is not heard of.
func (u *tenant) options() []quorate.Option {
	return []quorate.Option{e2e.Timing(time.Minute), quorate.WithPrefix(u.name), quorate.WithLogger(nil)}
}

// admin does something on servers, as a user with all rights.
func (u *tenant) admin(do func(c *redis.Client) error, nodes ...int) error {
	for _, i := range nodes {
		if err := do(u.servers[i].Client()); err != nil {
			return fmt.Errorf("the test itself: %w", err)
		}
	}
	return nil
}

// step is one use of the library.
type step struct {
	what string
	do   func(u *tenant, ctx context.Context, q *quorate.Quorum) error
}

// alone are the steps that one server suffices for; everything, those that
// three do.
var (
	alone = []step{
		{"bootstrap", func(_ *tenant, ctx context.Context, q *quorate.Quorum) error { return q.Bootstrap(ctx) }},
		{"check", (*tenant).check},
		{"mutex", (*tenant).mutex},
		{"rwmutex", (*tenant).rwmutex},
		{"semaphore", (*tenant).semaphore},
		{"once", (*tenant).once},
		{"leader", (*tenant).leader},
	}
	everything = slices.Concat(alone, []step{
		{"holder that is dead", (*tenant).dead},
		{"other client", (*tenant).otherClient},
		{"settle", (*tenant).settle},
		{"heal", (*tenant).reconnect},
		{"inspect", (*tenant).inspect},
	})
)

// works uses all that the library can do, in such a way that each command of
// each script is run, and returns what has failed first.
func (u *tenant) works(ctx context.Context, q *quorate.Quorum) error {
	return u.run(ctx, q, everything)
}

func (u *tenant) run(ctx context.Context, q *quorate.Quorum, steps []step) error {
	for _, step := range steps {
		if err := step.do(u, ctx, q); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func (u *tenant) check(ctx context.Context, q *quorate.Quorum) error {
	r, err := q.Check(ctx)
	if err != nil {
		return err
	}
	for _, n := range r.Nodes {
		switch {
		case n.Err != nil:
			return n.Err
		case n.Version == "":
			return errors.New("Check does not know the version: INFO")
		}
	}
	return nil
}

func (u *tenant) rwmutex(ctx context.Context, q *quorate.Quorum) error {
	a, b, w := rwmutex.New(q, u.job("rw")), rwmutex.New(q, u.job("rw")), rwmutex.New(q, u.job("rw"))
	if err := errors.Join(a.RLockContext(ctx), b.RLockContext(ctx)); err != nil {
		return err
	}
	queued := e2e.NewQueued(ctx)
	next := make(chan error, 1)
	go func() { next <- w.LockContext(queued) }()
	if err := waits(queued, next); err != nil {
		return err
	}
	if err := errors.Join(a.RUnlockContext(ctx), b.RUnlockContext(ctx), <-next); err != nil {
		return err
	}
	if err := errors.Join(w.Downgrade(ctx), a.RLockContext(ctx)); err != nil {
		return err
	}
	return errors.Join(w.RUnlockContext(ctx), a.RUnlockContext(ctx))
}

func (u *tenant) semaphore(ctx context.Context, q *quorate.Quorum) error {
	a, b := semaphore.NewWeighted(q, u.job("s"), 2), semaphore.NewWeighted(q, u.job("s"), 2)
	if err := errors.Join(a.Acquire(ctx, 1), b.Acquire(ctx, 1)); err != nil {
		return err
	}
	queued := e2e.NewQueued(ctx)
	next := make(chan error, 1)
	go func() { next <- a.Acquire(queued, 1) }()
	if err := waits(queued, next); err != nil {
		return err
	}
	if err := errors.Join(b.Resize(ctx, 3), <-next); err != nil {
		return err
	}
	n, err := a.Size(ctx)
	if err == nil && n != 3 {
		err = fmt.Errorf("%d permits", n)
	}
	a.Release(2)
	b.Release(1)
	return err
}

func (u *tenant) once(ctx context.Context, q *quorate.Quorum) error {
	return u.onceWith(ctx, q, once.WithDurable())
}

func (u *tenant) onceWith(ctx context.Context, q *quorate.Quorum, opts ...quorate.OnceOption) error {
	o := once.New(q, u.job("o"), opts...)
	if err := o.DoContext(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	s, err := once.New(q, u.job("o")).Status(ctx)
	if err == nil && s.State != once.Done {
		err = fmt.Errorf("it is %s", s.State)
	}
	return err
}

func (u *tenant) leader(ctx context.Context, q *quorate.Quorum) error {
	e := leader.New(q, u.job("l"), leader.WithID("me"))
	seen := make(chan string)
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		for l, err := range leader.New(q, u.job("l"), leader.WithID("you")).Observe(watching) {
			says := l.Value
			if err != nil {
				says = err.Error()
			}
			select {
			case seen <- says:
			case <-watching.Done():
			}
		}
	})
	// sees waits until the observer has that state.
	sees := func(want string) error {
		for last := "nothing"; ; {
			select {
			case last = <-seen:
				if strings.Contains(last, want) {
					return nil
				}
			case <-ctx.Done():
				return fmt.Errorf("the observer got %q", last)
			}
		}
	}
	for _, step := range []func() error{
		func() error { return sees(leader.ErrNoLeader.Error()) },
		func() error { return e.Campaign(ctx, "one") },
		func() error { return sees("one") },
		func() error { return e.Proclaim(ctx, "two") },
		func() error { return sees("two") },
		func() error { _, err := e.Leader(ctx); return err },
		func() error { return e.Resign(ctx) },
		func() error { return sees(leader.ErrNoLeader.Error()) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// home is where a server has its marker.
func (u *tenant) home(c *redis.Client) script.Home {
	text, _ := c.Get(context.Background(), script.SetKey(u.name)).Result()
	set, _ := nodeset.ParseNodeSet(text)
	return script.HomeOf(set.Stamp())
}

// reconnect: a server that lost its data gets the records again.
func (u *tenant) reconnect(ctx context.Context, q *quorate.Quorum) error {
	marker := u.home(u.servers[2].Client()).Marker(u.name)
	forget := func(c *redis.Client) error {
		text, err := c.Get(ctx, marker).Result()
		return errors.Join(err, c.Set(ctx, marker, strings.TrimSuffix(text, " w"), 0).Err())
	}
	if err := u.admin(forget, 2); err != nil {
		return err
	}
	for {
		// Asked again and again: the first answers may be those of the two
		// others.
		_, err := once.New(q, u.job("o")).Status(ctx)
		if text, _ := u.servers[2].Client().Get(ctx, marker).Result(); strings.HasSuffix(text, " w") {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("a server that lost its data has not been repaired: %w", ctx.Err())
		}
	}
}
