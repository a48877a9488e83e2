package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/mutex"
)

// listing measures what a listing of k names costs the nodes' other clients,
// which all wait while a node carries out a script or a SCAN.
func listing(k int) bench {
	return bench{
		Name: "ls", Group: "ls", Title: fmt.Sprintf("8 clients on their own names, %d names held beside, N=3", k),
		Show: []string{report.Longest, report.PerSecond, report.Listed},
		open: func(ctx context.Context, st *stage) error {
			st.stretch = 10 // long enough to list all names in one turn
			n, err := st.start(3)
			if err != nil {
				return err
			}
			q, err := libraries.Connect(ctx, n, long()...)
			if err != nil {
				return err
			}
			st.onClose(func() { _ = q.Close() })
			if err := many(k, func(i int) error {
				return mutex.New(q, fmt.Sprintf("listed %08d", i)).LockContext(ctx)
			}); err != nil {
				return err
			}
			s := scenario{Nodes: 3, Clients: 8}
			if err := s.join(ctx, st, libraries.Library{Name: report.QuorateName, Open: libraries.OpenQuorate(false,
				long()...), Commands: libraries.ByScript}, report.QuorateName, n); err != nil {
				return err
			}
			alone := st.sides[0].turn
			st.sides = []side{
				{report.QuorateName, func(ctx context.Context, d time.Duration) (report.Figures, error) {
					return watched(ctx, n, func() (report.Figures, error) { return alone(ctx, d) })
				}},
				{report.ListName, func(ctx context.Context, d time.Duration) (report.Figures, error) {
					return watched(ctx, n, func() (report.Figures, error) {
						return listBeside(ctx, q, func() (report.Figures, error) { return alone(ctx, d) })
					})
				}},
			}
			return nil
		},
	}
}

// listBeside lists the names repeatedly while f runs.
func listBeside(ctx context.Context, q *quorate.Quorum,
	f func() (report.Figures, error)) (report.Figures, error) {
	ctx, cancel := context.WithCancel(ctx)
	names, began, ended := 0, time.Now(), make(chan error)
	go func() {
		for ctx.Err() == nil {
			for _, err := range inspect.Names(ctx, q, "") {
				if err != nil && ctx.Err() == nil {
					ended <- err
					return
				}
				names++
			}
		}
		ended <- nil
	}()
	figs, err := f()
	cancel()
	err = errors.Join(err, <-ended)
	return figs.And(report.Figures{report.Listed: float64(names) / time.Since(began).Seconds()}), err
}

// watched adds to f's figures how long the longest script or SCAN blocked a
// node while f ran.
func watched(ctx context.Context, n servers.Nodes, f func() (report.Figures, error)) (report.Figures, error) {
	for i := range n.Len() {
		c := n.Node(i).Client()
		if err := errors.Join(c.ConfigSet(ctx, "latency-tracking-info-percentiles", "100").Err(),
			c.ConfigResetStat(ctx).Err()); err != nil {
			return nil, err
		}
	}
	figs, err := f()
	if err != nil {
		return nil, err
	}
	most := 0.0
	for i := range n.Len() {
		info, err := n.Node(i).Client().Info(ctx, "latencystats").Result()
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(info) {
			of, p100, _ := strings.Cut(strings.TrimSpace(line), ":p100=")
			if of != "latency_percentiles_usec_evalsha" && of != "latency_percentiles_usec_scan" {
				continue
			}
			v, err := strconv.ParseFloat(p100, 64)
			if err != nil {
				return nil, err
			}
			most = max(most, v/1e3)
		}
	}
	if most == 0 {
		return nil, errors.New("no node has told how long a script has taken")
	}
	return figs.And(report.Figures{report.Longest: most}), nil
}
