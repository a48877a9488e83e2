package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/testkit/proxy"
)

// Faults of the network. Each is undone before the next.
var networkHarms = append([]harm{
	{"node cut off, both ways", partition(one, everyClient, proxy.Both)},
	{"node cut off, requests only", partition(one, everyClient, proxy.Up)},
	{"node cut off, answers only", partition(one, everyClient, proxy.Down)},
	{"minority cut off, both ways", partition(fleet.Minority, everyClient, proxy.Both)},
	{"majority cut off, both ways", partition(fleet.Majority, everyClient, proxy.Both)},
	{"majority cut off, answers only", partition(fleet.Majority, everyClient, proxy.Down)},
	{"one client cut off from a majority, both ways", partition(fleet.Majority, oneClient, proxy.Both)},
	{"one client cut off from a majority, requests only", partition(fleet.Majority, oneClient, proxy.Up)},
	{"one client cut off from a majority, answers only", partition(fleet.Majority, oneClient, proxy.Down)},
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
func everyClient(*Nemesis) int { return -1 }
func oneClient(*Nemesis) int   { return 1 }

// impose puts a fault on the network for d.
func (n *Nemesis) impose(
	ctx context.Context, d time.Duration, clients, nodes []int, which proxy.Direction, f proxy.Fault,
) {
	n.Wires.Set(clients, nodes, which, f)
	record.Wait(ctx, d)
	n.Wires.Set(clients, nodes, which, pass)
}

// partition cuts some nodes off from some clients. Data that is sent meanwhile
// is lost with its connection, or arrives after the partition.
func partition(
	nodes func(voters int) int, clients func(*Nemesis) int, which proxy.Direction,
) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		clientsHit, from, d, late := n.everyone(), n.some(r, nodes), n.length(r), r.IntN(2) == 0
		pick := r.IntN(len(n.Clients))
		if len(from) == 0 {
			return "none", errOneNode
		}
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
		return fmt.Sprintf("%s from nodes %s for %v, messages %s", whose, list(from),
			d.Round(time.Millisecond), what), nil
	}
}

// overlap cuts each client off from a different minority, so that each has a
// majority, and no two have the same.
func overlap(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	d, order, all := n.length(r), n.shuffled(r), n.everyone()
	few := fleet.Minority(len(order))
	if few == 0 {
		return "none", errOneNode
	}
	for i, c := range all {
		for k := range few {
			n.Wires.Set([]int{c}, []int{order[(i*few+k)%len(order)]}, proxy.Both, hold)
		}
	}
	record.Wait(ctx, d)
	n.Wires.Set(all, order, proxy.Both, pass)
	return fmt.Sprintf("all clients for %v", d.Round(time.Millisecond)), nil
}

func everywhere(f proxy.Fault) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		d := between(r, n.Plan.TTL, n.Plan.TTL*4)
		n.impose(ctx, d, n.everyone(), n.allNodes(), proxy.Both, f)
		return fmt.Sprintf("all for %v", d.Round(time.Millisecond)), nil
	}
}

// tear ends each connection to one node after it has carried some bytes.
func tear(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	node, after, d := n.pick(r).ID, 1+r.Int64N(500), n.short(r)
	n.impose(ctx, d, n.everyone(), []int{node}, proxy.Down, proxy.Fault{Cut: after})
	return fmt.Sprintf("node %d after %d bytes, for %v", node, after, d.Round(time.Millisecond)), nil
}

// broken ends connections to one node when a request is sent.
func broken(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	node, d := n.pick(r).ID, n.short(r)
	n.impose(ctx, d, n.everyone(), []int{node}, proxy.Up, proxy.Fault{Reset: true})
	return fmt.Sprintf("node %d for %v", node, d.Round(time.Millisecond)), nil
}

// answersLost drops all answers for a short time, so that some joins, renewals
// and releases are carried out without their senders knowing.
func answersLost(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	d := between(r, 10*time.Millisecond, 200*time.Millisecond)
	from := n.some(r, func(voters int) int { return 1 + r.IntN(voters) })
	n.impose(ctx, d, n.everyone(), from, proxy.Down, lose)
	return fmt.Sprintf("nodes %s for %v", list(from), d.Round(time.Millisecond)), nil
}

// Faults that delay only one kind of a client's connections. A push may then
// report a vote that was withdrawn in the meantime, or arrive before the answer
// that it belongs to. Every pair of client and node has its own delay.
var lateHarms = []harm{
	{"pushes late by up to 1.5 ttl, commands not", late(proxy.Pushes)},
	{"commands or answers late by up to 1.5 ttl, pushes not", late(proxy.Commands)},
	{"pushes held back, then all at once", heldBack},
}

func late(kind proxy.Kind) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		d := between(r, n.Plan.TTL, n.Plan.TTL*4)
		for _, c := range n.Wires {
			for _, w := range c {
				f, which := n.latecomers.tardy(between(r, n.Plan.TTL/4, n.Plan.TTL*3/2), kind), proxy.Down
				if kind == proxy.Commands && r.IntN(2) == 0 {
					which = proxy.Up
				}
				w.Impose(which, kind, f)
			}
		}
		record.Wait(ctx, d)
		n.Wires.Set(n.everyone(), n.allNodes(), proxy.Both, pass)
		return fmt.Sprintf("all for %v", d.Round(time.Millisecond)), nil
	}
}

// heldBack holds back the pushes of some nodes to all clients, and delivers
// them at its end.
func heldBack(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	d, from := between(r, n.Plan.TTL/4, n.Plan.TTL*3/2),
		n.some(r, func(voters int) int { return 1 + r.IntN(voters) })
	for _, c := range n.Wires {
		for _, id := range from {
			c[id].Impose(proxy.Down, proxy.Pushes, n.latecomers.tardy(time.Hour, proxy.Pushes))
		}
	}
	record.Wait(ctx, d)
	n.Wires.Set(n.everyone(), from, proxy.Both, pass)
	return fmt.Sprintf("nodes %s for %v", list(from), d.Round(time.Millisecond)), nil
}
