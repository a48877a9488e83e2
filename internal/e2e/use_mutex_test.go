package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/mutex"
)

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
				command := script.AppendCommand(nil, keys, &terms, "unknown", 0, time.Hour,
					protocol.Request{Op: protocol.OpJoin, Ticket: 640})
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
