package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/samber/lo"
)

// nodes are servers and the ways to them.
type nodes struct {
	*redistest.Cluster
	addrs []string // which may lead through a proxy
	deaf  int      // so many, the last ones, are not asked: they would not answer
}

func direct(c *redistest.Cluster) nodes { return nodes{Cluster: c, addrs: c.Addrs()} }

// run starts n servers for as long as the stage stands.
func (st *stage) run(n int) (nodes, error) {
	c, err := redistest.Run(n)
	if err != nil {
		return nodes{}, err
	}
	st.onClose(func() { _ = c.Close() })
	return direct(c), nil
}

func (n nodes) urls() []string {
	return lo.Map(n.addrs, func(addr string, _ int) string { return "redis://" + addr })
}

// account is what has been used and done so far, by this process and by all
// nodes together. Processor time, unlike times by the clock, does not depend on
// what else the machine does, and where clients and servers keep all processors
// busy it is what decides.
type account struct {
	clients, servers time.Duration
	calls            map[string]float64 // commands carried out, those within scripts too
	busy             map[string]float64 // microseconds in them
	memory           float64            // bytes
	peers            int                // nodes that have told
}

func (n nodes) account(ctx context.Context) account {
	a := account{clients: ownCPU(), calls: map[string]float64{}, busy: map[string]float64{}}
	for i := range n.Len() - n.deaf {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		info, err := n.Node(i).Client().Info(ctx, "cpu", "commandstats", "memory").Result()
		cancel()
		if err != nil {
			continue
		}
		a.peers++
		for line := range strings.Lines(info) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			a.add(key, value)
		}
	}
	return a
}

func (a *account) add(key, value string) {
	number := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	switch command, isCommand := strings.CutPrefix(key, "cmdstat_"); {
	case key == "used_cpu_user" || key == "used_cpu_sys":
		a.servers += time.Duration(number(value) * float64(time.Second))
	case key == "used_memory":
		a.memory += number(value)
	case isCommand:
		for part := range strings.SplitSeq(value, ",") {
			switch name, v, _ := strings.Cut(part, "="); name {
			case "calls":
				a.calls[command] += number(v)
			case "usec":
				a.busy[command] += number(v)
			}
		}
	}
}

// sum adds up what a library's commands have come to. A server counts those
// within scripts as well, so one has to know which are sent from outside.
func sum(of map[string]float64, commands []string) float64 {
	return lo.Sum(lo.Map(commands, func(c string, _ int) float64 { return of[c] }))
}

// spent is what one use has cost of what happened between two accounts.
func spent(before, after account, commands []string, uses float64) report.Figures {
	peers := float64(max(1, after.peers))
	both := after.clients - before.clients + after.servers - before.servers
	return report.Figures{
		report.BothCPU:   micros(both) / uses,
		report.ClientCPU: micros(after.clients-before.clients) / uses,
		report.ServerCPU: micros(after.servers-before.servers) / uses,
		report.Requests:  (sum(after.calls, commands) - sum(before.calls, commands)) / uses / peers,
		report.NodeTime:  (sum(after.busy, commands) - sum(before.busy, commands)) / uses / peers,
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// version is what the servers say they are.
func (n nodes) version(ctx context.Context) (string, error) {
	info, err := n.Node(0).Client().Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(info, "redis_version:")
	if !found {
		return "", fmt.Errorf("no version in %q", info)
	}
	v, _, _ := strings.Cut(rest, "\r\n")
	return v, nil
}

// quiet keeps go-redis from telling on the terminal of each attempt to reach a
// node that is meant to be down.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// newRedis is what the other libraries are given for one node.
func newRedis(addr string, _ int) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }
