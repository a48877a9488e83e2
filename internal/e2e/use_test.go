package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
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

// next has m locked behind its holder, and returns when it is in line what
// tells of its turn. The wait ends with ctx.
func next(ctx context.Context, m *mutex.Mutex) (<-chan error, error) {
	turn := make(chan error, 1)
	go func() { turn <- m.LockContext(ctx) }()
	for {
		h, err := m.Holder(ctx)
		switch {
		case err == nil && h.Waiters > 0:
			return turn, nil
		case err != nil && !errors.Is(err, quorate.ErrNotHeld):
			return nil, err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case err := <-turn:
			return nil, fmt.Errorf("it should wait: %w", err)
		}
	}
}

// waits returns when the call of that context waits, and an error when it has
// ended instead.
func waits(queued *e2e.Queued, ended <-chan error) error {
	select {
	case <-queued.In():
		return nil
	case err := <-ended:
		return fmt.Errorf("it should wait: %w", err)
	}
}

func (u *tenant) mutex(ctx context.Context, q *quorate.Quorum) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a, b := mutex.New(q, u.job("m")), mutex.New(q, u.job("m"))
	if err := a.LockContext(ctx); err != nil {
		return err
	}
	turn, err := next(ctx, b)
	if err != nil {
		return err
	}
	if err := mutex.New(q, u.job("m")).TryLockContext(ctx); !errors.Is(err, quorate.ErrHeld) {
		return fmt.Errorf("it should be held: %w", err)
	}
	return pass(ctx, a, b, turn)
}

// pass unlocks a, and b when that has its turn.
func pass(ctx context.Context, a, b *mutex.Mutex, turn <-chan error) error {
	if err := a.UnlockContext(ctx); err != nil {
		return err
	}
	if err := <-turn; err != nil {
		return err
	}
	return b.UnlockContext(ctx)
}

// dead: a claim behind processes that have died has the nodes find that out.
// Two dead claims stay in a queue until the next request, however late it
// comes.
func (u *tenant) dead(ctx context.Context, q *quorate.Quorum) error {
	join := func(c *redis.Client) error {
		keys := script.NewKeys(u.name, u.job("dead")).At(u.home(c))
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for id := range byte(2) {
				terms := protocol.Terms{ID: protocol.ID{1 + id}, Weight: 1, Capacity: 1, TTL: 300 * time.Millisecond}
				command := script.AppendCommand(nil, keys, &terms, "unknown", 0, time.Hour, protocol.Request{Op: protocol.OpJoin, Ticket: 640})
				words, err := resp.NewReader(bytes.NewReader(command)).Read()
				if err != nil {
					return err
				}
				var args []any
				for _, w := range words {
					args = append(args, string(w.Str))
				}
				p.Do(ctx, args...)
			}
			return nil
		})
		return err
	}
	if err := u.admin(join, 0, 1, 2); err != nil {
		return err
	}
	m := mutex.New(q, u.job("dead"))
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	return m.UnlockContext(ctx)
}

// otherClient: another Redlock client has the redlock key.
func (u *tenant) otherClient(ctx context.Context, q *quorate.Quorum) error {
	m := mutex.New(q, u.job("other"))
	put := func(c *redis.Client) error { return c.Set(ctx, u.job("other"), "another", time.Minute).Err() }
	if err := u.admin(put, 0, 1, 2); err != nil {
		return err
	}
	if err := m.TryLockContext(ctx); !errors.Is(err, quorate.ErrHeld) {
		return fmt.Errorf("it should have been held: %w", err)
	}
	return nil
}

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
