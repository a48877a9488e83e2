package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/samber/lo"

	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
)

// burst measures clients, each with its own connections, that all lock a new
// name at the same moment. Clients whose tickets cross need more rounds. The
// first round of a claim is its join. Each further request per claim and node,
// except the leave, is another round.
func burst(clients int) bench {
	return bench{
		Name: "burst", Group: "burst",
		Title: fmt.Sprintf("%d clients join at once, each with connections of its own, N=5", clients),
		Show:  []string{report.Rounds, report.Requests, report.FirstServed, report.AllServed},
		open: func(ctx context.Context, st *stage) error {
			n, err := st.start(5)
			if err != nil {
				return err
			}
			for _, l := range libraries.Of(libraries.Working) {
				if l.Name != report.QuorateName && l.Name != report.RedsyncName || !st.libs.MatchString(l.Name) {
					continue
				}
				b := &bursts{l: l, n: n}
				for range clients {
					c, err := l.Open(ctx, n)
					if err != nil {
						return fmt.Errorf("%s: %w", l.Name, err)
					}
					st.onClose(c.Close)
					b.clients = append(b.clients, c)
				}
				st.sides = append(st.sides, side{l.Name, b.turn})
			}
			return nil
		},
	}
}

type bursts struct {
	l       libraries.Library
	n       servers.Nodes
	clients []libraries.Client
	names   int
}

// turn makes one burst after another until d is over, but at least one.
func (b *bursts) turn(ctx context.Context, d time.Duration) (report.Figures, error) {
	var all []report.Figures
	for end := time.Now().Add(d); len(all) == 0 || time.Now().Before(end); {
		b.names++
		t := &team{scenario: scenario{Clients: len(b.clients), OneName: true, Times: 1},
			nodes: b.n, commands: b.l.Commands}
		g := &libraries.Guard{}
		for _, c := range b.clients {
			t.lockers = append(t.lockers, c.Mutex(b.l.Name+" burst "+strconv.Itoa(b.names)))
			t.guards = append(t.guards, g)
		}
		f, err := t.turn(ctx, time.Minute)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	f := report.Figures{}
	for _, name := range []string{report.Requests, report.FirstServed, report.AllServed} {
		f[name] = report.SpreadOf(lo.Map(all, func(of report.Figures, _ int) float64 { return of[name] })).Median
	}
	if b.l.Name == report.QuorateName {
		f[report.Rounds] = f[report.Requests] - 1 // the leave
	}
	return f, nil
}
