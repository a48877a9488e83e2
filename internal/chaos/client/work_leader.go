package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/leader"
)

// One in this many terms replaces its value.
const proclaims = 8

// leaderWork campaigns, leads and resigns. An Election leads for all goroutines
// that share it, so each goroutine takes one of its own for each operation.
type leaderWork struct{ free chan *leader.Election }

func openLeader(e *Env, name string) work {
	w := leaderWork{make(chan *leader.Election, e.Each)}
	for range e.Each {
		w.free <- leader.New(e.Quorum, name)
	}
	return w
}

func (w leaderWork) do(ctx context.Context, t *turn) {
	e := <-w.free
	defer func() { w.free <- e }()
	if t.rand.IntN(looks) == 0 {
		look(ctx, t, e)
	}
	op, ok := t.ask(ctx, 1, func(ctx context.Context) error { return e.Campaign(ctx, "") })
	if !ok {
		return
	}
	lease := e.Lease()
	t.begin(op, lease)
	if !t.calm && t.rand.IntN(proclaims) == 0 {
		bounded, cancel := context.WithTimeout(lease.Context(), t.patience)
		err := e.Proclaim(bounded, "again")
		cancel()
		if err != nil && !errors.Is(err, quorate.ErrLost) && !errors.Is(err, quorate.ErrNoQuorum) {
			t.log.Trouble(fmt.Errorf("proclaim by %s: %w", op, err))
		}
	}
	t.use(op, lease, true)
	t.end(op, lease, func() error { return unlock(e.Resign) })
}

// look asks for the leader, and logs the answer.
func look(ctx context.Context, t *turn, e *leader.Election) {
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	from := record.Now()
	switch l, err := e.Leader(ctx); {
	case err == nil:
		t.log.Write(record.Event{T: record.Now(), E: record.EvTold, Kind: t.kind, Name: t.name,
			From: from, Token: l.Term})
	case !errors.Is(err, leader.ErrNoLeader) && !errors.Is(err, quorate.ErrNoQuorum) && ctx.Err() == nil:
		t.log.Trouble(fmt.Errorf("asking for the leader of %s: %w", t.name, err))
	}
}
