package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/testkit/proxy"
)

// What is done to the network. Each is undone before the next.
var networkHarms = append([]harm{
	{"node cut off, both ways", partition(one, everyClient, proxy.Both)},
	{"node cut off, requests only", partition(one, everyClient, proxy.Up)},
	{"node cut off, answers only", partition(one, everyClient, proxy.Down)},
	{"minority cut off, both ways", partition(minority, everyClient, proxy.Both)},
	{"majority cut off, both ways", partition(majority, everyClient, proxy.Both)},
	{"majority cut off, answers only", partition(majority, everyClient, proxy.Down)},
	{"one client cut off from a majority, both ways", partition(majority, oneClient, proxy.Both)},
	{"one client cut off from a majority, requests only", partition(majority, oneClient, proxy.Up)},
	{"one client cut off from a majority, answers only", partition(majority, oneClient, proxy.Down)},
	{"each client sees a majority of its own", overlap},
	{"latency of 50±10 ms each way", everywhere(slow)},
	{"20% loss (as TCP shows it: resends)", everywhere(lossy)},
	{"connections cut in the middle of an answer", tear},
	{"connections broken by the next request", broken},
	{"answers lost for a moment", answersLost},
}, lateHarms...)

// The faults that several harms impose.
var (
	pass  = proxy.Fault{}
	lose  = proxy.Fault{Drop: true}
	hold  = proxy.Fault{Hold: true}
	slow  = proxy.Fault{Delay: 50 * time.Millisecond, Jitter: 10 * time.Millisecond}
	lossy = proxy.Fault{Loss: 20}
)

func one(int) int              { return 1 }
func everyClient(*nemesis) int { return -1 }
func oneClient(*nemesis) int   { return 1 }

// impose puts a fault on the network for d.
func (n *nemesis) impose(ctx context.Context, d time.Duration, clients, nodes []int, which proxy.Direction, f proxy.Fault) {
	n.wires.set(clients, nodes, which, f)
	wait(ctx, d)
	n.wires.set(clients, nodes, which, pass)
}

// length of a cut: below, around or above the ttl.
func (n *nemesis) length(r *rand.Rand) time.Duration {
	return between(r, n.plan.TTL/4, n.plan.TTL*5/2)
}

// partition cuts some nodes off from some clients. What is sent meanwhile is
// lost with its connection, or comes when it is over.
func partition(nodes func(voters int) int, clients func(*nemesis) int, which proxy.Direction) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		clientsHit, from, d, late := n.everyone(), n.some(r, nodes), n.length(r), r.IntN(2) == 0
		pick := r.IntN(len(n.clients))
		whose := "all clients"
		if clients(n) > 0 {
			clientsHit = []int{pick}
			whose = fmt.Sprintf("client %d", pick)
		}
		fault, what := lose, "lost"
		if late {
			fault, what = hold, "late"
		}
		n.impose(ctx, d, clientsHit, from, which, fault)
		return fmt.Sprintf("%s from nodes %s for %v, messages %s", whose, list(from), d.Round(time.Millisecond), what), nil
	}
}

// overlap cuts each client off from a minority of its own, so that each has a
// majority, and no two the same.
func overlap(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	d, order, all := n.length(r), n.shuffled(r), n.everyone()
	few := minority(len(order))
	for i, c := range all {
		for k := range few {
			n.wires.set([]int{c}, []int{order[(i*few+k)%len(order)]}, proxy.Both, hold)
		}
	}
	wait(ctx, d)
	n.wires.set(all, order, proxy.Both, pass)
	return fmt.Sprintf("all clients for %v", d.Round(time.Millisecond)), nil
}

func everywhere(f proxy.Fault) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		d := between(r, n.plan.TTL, n.plan.TTL*4)
		n.impose(ctx, d, n.everyone(), n.allNodes(), proxy.Both, f)
		return fmt.Sprintf("all for %v", d.Round(time.Millisecond)), nil
	}
}

// tear lets some bytes of each connection to one node pass, and then ends it.
func tear(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	node, after, d := n.pick(r).id, 1+r.Int64N(500), n.short(r)
	n.impose(ctx, d, n.everyone(), []int{node}, proxy.Down, proxy.Fault{Cut: after})
	return fmt.Sprintf("node %d after %d bytes, for %v", node, after, d.Round(time.Millisecond)), nil
}

// broken ends connections to one node when something is asked.
func broken(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	node, d := n.pick(r).id, n.short(r)
	n.impose(ctx, d, n.everyone(), []int{node}, proxy.Up, proxy.Fault{Reset: true})
	return fmt.Sprintf("node %d for %v", node, d.Round(time.Millisecond)), nil
}

// answersLost drops all answers for so short a time that some requests are
// carried out and their senders never know: joins, renewals, releases.
func answersLost(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	d := between(r, 10*time.Millisecond, 200*time.Millisecond)
	from := n.some(r, func(voters int) int { return 1 + r.IntN(voters) })
	n.impose(ctx, d, n.everyone(), from, proxy.Down, lose)
	return fmt.Sprintf("nodes %s for %v", list(from), d.Round(time.Millisecond)), nil
}
