package main

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// onShards measures many clients, each on its own name, at one node that is a
// Redis Cluster and so uses buckets.
func onShards(shards, clients int) bench {
	s := scenario{Nodes: 1, Clients: clients}
	return bench{
		Name: fmt.Sprintf("shards/%d", shards), Group: "shards",
		Title: fmt.Sprintf("%s, a cluster with %d masters", s.title(), shards),
		Show:  []string{report.PerSecond, report.ClientCPU, report.ServerCPU},
		open: func(ctx context.Context, st *stage) error {
			c, err := redistest.RunSharded(ctx, shards)
			if err != nil {
				return err
			}
			st.onClose(func() { _ = c.Close() })
			open := func(ctx context.Context, _ servers.Nodes) (libraries.Client, error) {
				q, err := libraries.ConnectTo(ctx, []string{c.URL()})
				if err != nil {
					return nil, err
				}
				return libraries.ClientOf(q), nil
			}
			l := libraries.Library{Name: report.QuorateName, Commands: libraries.ByScript, Open: open}
			return s.join(ctx, st, l, l.Name, servers.Direct(c.Cluster))
		},
	}
}
