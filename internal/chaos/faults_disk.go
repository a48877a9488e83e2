package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// onSlowDisk does something to one node that has every write on its disk before
// it answers, while each of them takes long there.
func (n *nemesis) onSlowDisk(pick int, delay time.Duration, do func(*node) error) (string, error) {
	var slow []*node
	for _, nd := range n.voters() {
		if nd.store == always {
			slow = append(slow, nd)
		}
	}
	if len(slow) == 0 {
		return "none", fmt.Errorf("%w: no node has a disk that can be slow", errSkip)
	}
	nd := slow[pick%len(slow)]
	nd.mu.Lock()
	defer nd.mu.Unlock()
	err := nd.server.SetDisk(delay)
	return fmt.Sprintf("node %d, each sync takes %v", nd.id, delay.Round(time.Millisecond)), errors.Join(err, do(nd))
}

// slowDisk is slow for a while, and fast again.
func slowDisk(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	pick, delay, d := r.Int(), between(r, n.plan.TTL/100, n.plan.TTL/2), n.length(r)
	return n.onSlowDisk(pick, delay, func(nd *node) error {
		wait(ctx, d)
		return nd.server.SetDisk(0)
	})
}

// cutPower ends a node in the middle of a sync, mostly, and all that is not on
// the disk is gone. It has answered nothing of that, but the library takes a
// restart for a loss.
func cutPower(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	pick, delay := r.Int(), between(r, n.plan.TTL/100, n.plan.TTL/2)
	after, down := between(r, delay, 4*delay), between(r, 0, n.plan.TTL*2)
	var gone int64
	target, err := n.onSlowDisk(pick, delay, func(nd *node) (err error) {
		if err := n.memory.lose(nd.id); err != nil {
			return errors.Join(err, nd.server.SetDisk(0))
		}
		defer n.back(nd)
		wait(ctx, after)
		gone, err = nd.server.CutPower()
		wait(ctx, down)
		return errors.Join(err, nd.server.SetDisk(0), nd.restart(), n.uproot(context.WithoutCancel(ctx), nd))
	})
	return fmt.Sprintf("%s, %d bytes gone, down for %v", target, gone, down.Round(time.Millisecond)), err
}
