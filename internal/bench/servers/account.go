package servers

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/bench/report"
	"github.com/samber/lo"
)

// Account is what has been used and done so far, by this process and by all
// nodes together. Processor time, unlike times by the clock, does not depend on
// what else the machine does, and where clients and servers keep all processors
// busy it is what decides.
type Account struct {
	clients, servers time.Duration
	Calls            map[string]float64 // commands carried out, those within scripts too
	Busy             map[string]float64 // microseconds in them
	Memory           float64            // bytes
	peers            int                // nodes that have told
}

// Account asks the nodes that are not deaf.
func (n Nodes) Account(ctx context.Context) Account {
	a := Account{clients: OwnCPU(), Calls: map[string]float64{}, Busy: map[string]float64{}}
	for i := range n.Len() - n.Deaf {
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

func (a *Account) add(key, value string) {
	number := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	switch command, isCommand := strings.CutPrefix(key, "cmdstat_"); {
	case key == "used_cpu_user" || key == "used_cpu_sys":
		a.servers += time.Duration(number(value) * float64(time.Second))
	case key == "used_memory":
		a.Memory += number(value)
	case isCommand:
		for part := range strings.SplitSeq(value, ",") {
			switch name, v, _ := strings.Cut(part, "="); name {
			case "calls":
				a.Calls[command] += number(v)
			case "usec":
				a.Busy[command] += number(v)
			}
		}
	}
}

// Sum adds up what a library's commands have come to. A server counts those
// within scripts as well, so one has to know which are sent from outside.
func Sum(of map[string]float64, commands []string) float64 {
	return lo.Sum(lo.Map(commands, func(c string, _ int) float64 { return of[c] }))
}

// Spent is what one use has cost of what happened between two accounts.
func Spent(before, after Account, commands []string, uses float64) report.Figures {
	peers := float64(max(1, after.peers))
	both := after.clients - before.clients + after.servers - before.servers
	return report.Figures{
		report.BothCPU:   report.Micros(both) / uses,
		report.ClientCPU: report.Micros(after.clients-before.clients) / uses,
		report.ServerCPU: report.Micros(after.servers-before.servers) / uses,
		report.Requests:  (Sum(after.Calls, commands) - Sum(before.Calls, commands)) / uses / peers,
		report.NodeTime:  (Sum(after.Busy, commands) - Sum(before.Busy, commands)) / uses / peers,
	}
}
