package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// What delays one kind of a client's connections, and not the other. A push may then
// tell of a vote that has been taken back since, or come before the answer that it
// belongs to. Every way from a client to a node has a delay of its own.
var lateHarms = []harm{
	{"pushes late by up to 1.5 ttl, commands not", late(pushes)},
	{"commands or answers late by up to 1.5 ttl, pushes not", late(commands)},
	{"pushes held back, then all at once", heldBack},
}

// latecomers counts what has been late.
type latecomers struct {
	pushes   atomic.Int64 // messages
	commands atomic.Int64 // pieces of what a connection transports
}

// tardy delays what comes by a fixed time, and counts it.
type tardy struct {
	delay time.Duration
	kind  connKind
	count *latecomers
}

// Pipe is the toxic's.
func (t *tardy) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			if t.kind == pushes {
				t.count.pushes.Add(int64(bytes.Count(c.Data, []byte("$7\r\nmessage\r\n"))))
			} else {
				t.count.commands.Add(1)
			}
			select {
			case <-time.After(t.delay - time.Since(c.Timestamp)):
				stub.Output <- c
			case <-stub.Interrupt:
				stub.Output <- c
				return
			}
		}
	}
}

func late(kind connKind) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		d := between(r, n.plan.TTL, n.plan.TTL*4)
		for _, c := range n.wires {
			for _, w := range c {
				toxic := &tardy{delay: between(r, n.plan.TTL/4, n.plan.TTL*3/2), kind: kind, count: &n.late}
				if kind == commands && r.IntN(2) == 0 {
					w.asks.turn(toxic, kind)
				} else {
					w.tells.turn(toxic, kind)
				}
			}
		}
		wait(ctx, d)
		n.wires.set(n.everyone(), some(r, len(n.nodes), len(n.nodes)), both, pass)
		return fmt.Sprintf("all for %v", d.Round(time.Millisecond)), nil
	}
}

// heldBack keeps the pushes of some nodes to all clients, and delivers them when it is over.
func heldBack(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	d, from := between(r, n.plan.TTL/4, n.plan.TTL*3/2), some(r, 1+r.IntN(len(n.nodes)), len(n.nodes))
	for _, c := range n.wires {
		for _, id := range from {
			c[id].tells.turn(&tardy{delay: time.Hour, kind: pushes, count: &n.late}, pushes)
		}
	}
	wait(ctx, d)
	n.wires.set(n.everyone(), from, both, pass)
	return fmt.Sprintf("nodes %s for %v", list(from), d.Round(time.Millisecond)), nil
}
