package nemesis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// Faults of clients.
var clientHarms = []harm{
	{"client stopped for more than a ttl", stopClient((*Nemesis).long)},
	{"client killed and restarted", killClient},
	{"client stopped for less than a ttl", stopClient((*Nemesis).short)},
	{"holders evicted by an operator", evictHolders},
}

func killClient(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	c, down := n.Clients[r.IntN(len(n.Clients))], between(r, 0, n.Plan.TTL*2)
	target := fmt.Sprintf("client %d, down for %v", c.ID, down.Round(time.Millisecond))
	if err := c.Kill(); err != nil {
		return target, err
	}
	record.Wait(ctx, down)
	return target, c.Start()
}

func stopClient(
	length func(*Nemesis, *rand.Rand) time.Duration,
) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		c, d := n.Clients[r.IntN(len(n.Clients))], length(n, r)
		target := fmt.Sprintf("client %d for %v", c.ID, d.Round(time.Millisecond))
		err := c.Signal(syscall.SIGSTOP)
		record.Wait(ctx, d)
		return target, errors.Join(err, c.Signal(syscall.SIGCONT))
	}
}

// evictHolders makes an operator end one hold after another, of all names, for
// a while. The operator connects to the nodes directly, so it notices nodes
// that are down but is not affected by faults of the clients' connections. No
// client is killed meanwhile, so each of them logs when its hold has ended.
func evictHolders(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	d := n.long(r)
	set, _ := n.Roster.Now()
	clients := lo.Map(set, func(id int, _ int) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: n.Nodes[id].Server.Addr()})
	})
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	q, err := quorate.New(clients, e2e.Guarded(n.Plan.TTL, n.Plan.Guard),
		quorate.WithRetention(n.Plan.Guard), quorate.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return "", err
	}
	all := lo.FlatMap(n.Plan.Work, func(kind string, _ int) []string { return client.Names(kind) })
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	evicted, over, deaf, silent := 0, 0, 0, 0
	for ctx.Err() == nil {
		name := all[r.IntN(len(all))]
		report, err := inspect.Name(ctx, q, name)
		if err != nil || len(report.Holders) == 0 {
			record.Wait(ctx, 5*time.Millisecond)
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
		err = errors.Join(err, fleet.ErrSkip)
	}
	return fmt.Sprintf("%d holds in %v; %d were over, %d did not hear, %d without a quorum", evicted,
		d.Round(time.Millisecond), over, deaf, silent), err
}

// Clients whose machine sleeps: they are stopped for less or more than a ttl.
// Meanwhile their connections end, or the answers to their requests wait for
// them.
var sleepHarms = []harm{
	{"one client asleep, its connections end", asleep(oneSleeps, true)},
	{"some clients asleep, their connections end", asleep(someSleep, true)},
	{"all clients asleep, their connections end", asleep(allSleep, true)},
	{"some clients asleep, answers wait for them", asleep(someSleep, false)},
	{"all clients asleep, answers wait for them", asleep(allSleep, false)},
}

func oneSleeps(*rand.Rand, int) int     { return 1 }
func someSleep(r *rand.Rand, n int) int { return 1 + r.IntN(n-1) }
func allSleep(_ *rand.Rand, n int) int  { return n }

// asleep stops clients for 20 ms to 2 ttl.
func asleep(how func(*rand.Rand, int) int, ends bool) func(context.Context, *Nemesis, *rand.Rand) (
	string, error,
) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		chosen := some(r, how(r, len(n.Clients)), len(n.Clients))
		d := between(r, 20*time.Millisecond, 2*n.Plan.TTL)
		before := between(r, 0, d)
		target := fmt.Sprintf("clients %s for %v", list(chosen), d.Round(time.Millisecond))
		signal := func(s syscall.Signal) (err error) {
			for _, c := range chosen {
				err = errors.Join(err, n.Clients[c].Signal(s))
			}
			return err
		}
		err := signal(syscall.SIGSTOP)
		record.Wait(ctx, before)
		if ends {
			ended := n.Wires.Cut(chosen)
			n.ended.Add(int64(ended))
			target += fmt.Sprintf(", %d connections ended after %v", ended, before.Round(time.Millisecond))
		}
		record.Wait(ctx, d-before)
		return target, errors.Join(err, signal(syscall.SIGCONT))
	}
}
