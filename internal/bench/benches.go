package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
)

// Each group is a table: see groups in report/table.go. Each bench is one or
// more rows.

// allBenches returns all benches, in the order of the tables.
func allBenches(set settings) []bench {
	var list []bench
	add := func(b ...bench) { list = append(list, b...) }
	inSeries := func(series string, x int, b bench) bench {
		b.Series, b.X = series, float64(x)
		return b
	}

	// One client on a free name, and many clients, each on its own name.
	for _, n := range []int{1, 3, 5, 7} {
		s := scenario{Nodes: n, Clients: 1}
		add(inSeries("nodes", n, s.bench("uncontended/"+strconv.Itoa(n), "free", report.Mean, report.BothCPU)))
	}
	for _, c := range []int{8, 64, 256} {
		s := scenario{Nodes: 5, Clients: c}
		add(inSeries("names", c, s.bench("names/"+strconv.Itoa(c), "free", report.PerSecond, report.BothCPU)))
	}
	// With one node, the other libraries use one connection per caller.
	for _, c := range []int{2, 8, 64} {
		s := scenario{Nodes: 1, Clients: c}
		add(s.bench("names-one-node/"+strconv.Itoa(c), "free", report.PerSecond, report.BothCPU))
	}

	for _, n := range []int{1, 2, 3} {
		add(onShards(n, 64))
	}

	// On a network. Each connection costs the proxy a sleeping thread, so with many
	// clients only libraries that share a connection are compared.
	for _, trip := range []time.Duration{300 * time.Microsecond, time.Millisecond} {
		for _, c := range []int{1, 8, 64} {
			s := scenario{Nodes: 1, Clients: c, Away: trip}
			if c > 1 {
				s.Only = []string{report.QuorateName, report.AsyncName, report.RueidisName,
					report.FloorName, report.FencedName}
			}
			add(s.bench(fmt.Sprintf("away/%v/%d", trip, c), "away", report.PerSecond, report.Mean, report.BothCPU))
		}
	}

	// Held longer than a lock that only a quorum of the nodes knows.
	kept := scenario{Nodes: 5, Clients: 1024, Hold: 25 * time.Millisecond}
	add(kept.bench("names-kept/1024", "free", report.PerSecond, report.BothCPU))

	// One name. A turn must be long enough for every client to get the lock.
	for _, c := range []int{1, 8, 16, 32, 64, 256} {
		s := scenario{Nodes: 5, Clients: c, OneName: true, Hold: 10 * time.Millisecond, Stretch: 2.5}
		show := []string{report.Share, report.Requests}
		switch c {
		case 64:
			s.Stretch = 5
			show = []string{report.Share, report.WaitRatio, report.ServedLeast, report.ServedMost,
				report.Requests, report.BothCPU}
		default:
			s.Only = []string{report.QuorateName, report.RedsyncName}
		}
		add(inSeries("queue", c, s.bench("queue/"+strconv.Itoa(c), "queue", show...)))
	}
	alone := scenario{Nodes: 1, Clients: 8, Quorums: 8, OneName: true, Hold: 10 * time.Millisecond, Stretch: 2.5}
	add(alone.bench("queue-one-node/8", "queue", report.Share, report.WaitRatio, report.Requests))
	// Without a hold time: a redsync client mostly relocks what it has just
	// unlocked while the others sleep.
	for _, q := range []int{1, 16} {
		s := scenario{Nodes: 5, Clients: 16, Quorums: q, OneName: true,
			Only: []string{report.QuorateName, report.AsyncName, report.RedsyncName, report.FastName}}
		add(s.bench("queue-no-hold/"+strconv.Itoa(q), "queue", report.PerSecond, report.BothCPU, report.ServedLeast,
			report.ServedMost, report.Requests))
	}
	shared := scenario{Nodes: 5, Clients: 64, OneName: true, Shared: true}
	add(shared.bench("goroutines/64", "queue", report.PerSecond, report.Requests))
	add(burst(64))

	add(handover(1, report.QuorateName, report.RedsyncName, report.RueidisName, report.BsmName),
		handover(5, report.QuorateName, report.RedsyncName))

	for _, t := range []trouble{killed, hung, slow} {
		s := scenario{Nodes: 5, Clients: 1, Trouble: t}
		name := map[trouble]string{killed: "killed", hung: "hung", slow: "slow"}[t]
		add(s.bench("outage/"+name, "outage", report.LockP50, report.LockP99, report.UnlockP99))
	}

	readers := scenario{Nodes: 5, Clients: 32, Quorums: 4, Job: libraries.Reading, Hold: time.Millisecond}
	users := scenario{Nodes: 5, Clients: 64, Quorums: 4, Job: libraries.Permits,
		Hold: 50 * time.Millisecond, Stretch: 2.5}
	add(readers.bench("read-mostly", "sharing", report.PerSecond, report.BothCPU),
		users.bench("semaphore", "sharing", report.PerSecond, report.BothCPU))
	add(locals()...)
	add(seen(1), seen(5), listing(set.leases))
	add(whereTime(1), whereTime(5))
	add(countedLocks(), countedPermits(0), countedPermits(10), countedPermits(100), countedRequests())

	for _, k := range []int{1, 10, 100, 1000, 10_000, 100_000} {
		if k <= set.leases {
			add(held(k))
		}
	}
	add(renewal(set.leases), shortLived(set.names))
	if set.fleet > 0 {
		add(capacity(set.fleet))
	}
	for _, k := range []int{10, 100, 1000, 10_000} {
		if k <= set.leases {
			add(permitsInUse(k))
		}
	}
	return list
}
