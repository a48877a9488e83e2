package servers

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/bench/report"
	"github.com/samber/lo"
)

// Account is the total of what this process and all nodes have used and done so
// far. Unlike wall-clock time, processor time does not depend on other load,
// and if clients and servers keep all processors busy it is the limit.
type Account struct {
	clients, servers time.Duration
	Calls            map[string]float64 // commands carried out, including those inside scripts
	Busy             map[string]float64 // microseconds in them
	Memory           float64            // bytes
	Buffers          float64            // bytes of it that belong to connections
	peers            int                // nodes that have answered
}

// Account asks all nodes except the deaf ones.
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
	case key == "mem_clients_normal":
		a.Buffers += number(value)
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

// Sum adds up the counts of a library's commands. A server also counts commands
// inside scripts, so commands names those that the library itself sends.
func Sum(of map[string]float64, commands []string) float64 {
	return lo.Sum(lo.Map(commands, func(c string, _ int) float64 { return of[c] }))
}

// Spent returns the cost of one use, from the difference between two accounts.
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
