package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
)

// evictHolders has an operator end one hold after the other, of all names, for
// a while. It asks the nodes themselves, and so learns of those that are down
// and not of what the clients' connections suffer. No client is killed
// meanwhile, so each of them writes down when its hold has ended.
func evictHolders(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	d := n.long(r)
	set, _ := n.roster.now()
	clients := lo.Map(set, func(id int, _ int) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: n.nodes[id].server.Addr()})
	})
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	q, err := quorate.New(clients, e2e.Guarded(n.plan.TTL, n.plan.Guard), quorate.WithRetention(n.plan.Guard), quorate.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return "", err
	}
	all := lo.FlatMap(n.plan.Work, func(kind string, _ int) []string { return names(kind) })
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	evicted, over, deaf, silent := 0, 0, 0, 0
	for ctx.Err() == nil {
		name := all[r.IntN(len(all))]
		report, err := inspect.Name(ctx, q, name)
		if err != nil || len(report.Holders) == 0 {
			wait(ctx, 5*time.Millisecond)
			continue
		}
		h := report.Holders[r.IntN(len(report.Holders))]
		switch err := inspect.Evict(ctx, q, name, h.Token); {
		case err == nil:
			evicted++
		case errors.Is(err, quorate.ErrNotHeld):
			over++
		case ctx.Err() != nil:
		case errors.Is(err, quorate.ErrHeld):
			deaf++
		default:
			silent++
		}
	}
	err = q.Close()
	if evicted == 0 {
		err = errors.Join(err, errSkip)
	}
	return fmt.Sprintf("%d holds in %v; %d were over, %d did not hear, %d without a quorum", evicted, d.Round(time.Millisecond), over, deaf, silent), err
}
