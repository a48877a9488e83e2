package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/testkit/proxy"
)

// What delays one kind of a client's connections, and not the other. A push may
// then tell of a vote that has been taken back since, or come before the answer
// that it belongs to. Every way from a client to a node has a delay of its own.
var lateHarms = []harm{
	{"pushes late by up to 1.5 ttl, commands not", late(proxy.Pushes)},
	{"commands or answers late by up to 1.5 ttl, pushes not", late(proxy.Commands)},
	{"pushes held back, then all at once", heldBack},
}

// latecomers counts what has been late.
type latecomers struct {
	pushes   atomic.Int64 // messages
	commands atomic.Int64 // pieces of what a connection transports
}

// tardy is a fault that delays what comes by a fixed time, and counts it.
func (l *latecomers) tardy(delay time.Duration, kind proxy.Kind) proxy.Fault {
	count := func([]byte) { l.commands.Add(1) }
	if kind == proxy.Pushes {
		count = func(data []byte) { l.pushes.Add(int64(bytes.Count(data, []byte("$7\r\nmessage\r\n")))) }
	}
	return proxy.Fault{Delay: delay, Observe: count}
}

func late(kind proxy.Kind) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		d := between(r, n.plan.TTL, n.plan.TTL*4)
		for _, c := range n.wires {
			for _, w := range c {
				f, which := n.late.tardy(between(r, n.plan.TTL/4, n.plan.TTL*3/2), kind), proxy.Down
				if kind == proxy.Commands && r.IntN(2) == 0 {
					which = proxy.Up
				}
				w.Impose(which, kind, f)
			}
		}
		wait(ctx, d)
		n.wires.set(n.everyone(), n.allNodes(), proxy.Both, pass)
		return fmt.Sprintf("all for %v", d.Round(time.Millisecond)), nil
	}
}

// heldBack keeps the pushes of some nodes to all clients, and delivers them
// when it is over.
func heldBack(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	d, from := between(r, n.plan.TTL/4, n.plan.TTL*3/2), n.some(r, func(voters int) int { return 1 + r.IntN(voters) })
	for _, c := range n.wires {
		for _, id := range from {
			c[id].Impose(proxy.Down, proxy.Pushes, n.late.tardy(time.Hour, proxy.Pushes))
		}
	}
	wait(ctx, d)
	n.wires.set(n.everyone(), from, proxy.Both, pass)
	return fmt.Sprintf("nodes %s for %v", list(from), d.Round(time.Millisecond)), nil
}
