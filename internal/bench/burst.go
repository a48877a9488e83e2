package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/samber/lo"

	"github.com/quorate/quorate/internal/bench/report"
)

// burst is clients with connections of their own that all ask for a new name at
// the same moment: those whose tickets cross need more rounds. A request per
// claim and node beyond a join and a leave is one of a further round; the join
// is the first.
func burst(clients int) bench {
	return bench{
		Name: "burst", Group: "burst", Title: fmt.Sprintf("%d clients join at once, each with connections of its own, N=5", clients),
		Show: []string{report.Rounds, report.Requests, report.FirstServed, report.AllServed},
		open: func(ctx context.Context, set settings, st *stage) error {
			n, err := st.run(5)
			if err != nil {
				return err
			}
			for _, l := range libraries(working) {
				if l.name != report.QuorateName && l.name != report.RedsyncName || !set.libs.MatchString(l.name) {
					continue
				}
				b := &bursts{l: l, n: n}
				for range clients {
					c, err := l.open(ctx, n)
					if err != nil {
						return fmt.Errorf("%s: %w", l.name, err)
					}
					st.onClose(c.Close)
					b.clients = append(b.clients, c)
				}
				st.sides = append(st.sides, side{l.name, b.turn})
			}
			return nil
		},
	}
}

type bursts struct {
	l       library
	n       nodes
	clients []client
	names   int
}

// turn makes one burst after the other until d is over, and one at least.
func (b *bursts) turn(ctx context.Context, d time.Duration) (report.Figures, error) {
	var all []report.Figures
	for end := time.Now().Add(d); len(all) == 0 || time.Now().Before(end); {
		b.names++
		t := &team{scenario: scenario{Clients: len(b.clients), OneName: true, Times: 1}, nodes: b.n, commands: b.l.commands}
		g := &guard{}
		for _, c := range b.clients {
			t.lockers = append(t.lockers, c.Mutex(b.l.name+" burst "+strconv.Itoa(b.names)))
			t.guards = append(t.guards, g)
		}
		f, err := t.run(ctx, time.Minute)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	f := report.Figures{}
	for _, name := range []string{report.Requests, report.FirstServed, report.AllServed} {
		f[name] = report.SpreadOf(lo.Map(all, func(of report.Figures, _ int) float64 { return of[name] })).Median
	}
	if b.l.name == report.QuorateName {
		f[report.Rounds] = f[report.Requests] - 1 // the leave
	}
	return f, nil
}
