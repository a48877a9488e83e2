package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/record"
)

// Faults of servers.
var serverHarms = []harm{
	{"server killed and restarted", killServer},
	{"server killed, and its disk lost", loseDisk},
	{"server stopped for less than a ttl", stopServer((*Nemesis).short)},
	{"server killed, the end of its log cut off", cutServer},
	{"server stopped for more than a ttl", stopServer((*Nemesis).long)},
	{"minority of servers stopped for more than a ttl", stopServers},
	{"disk slow, with fsync=always", slowDisk},
	{"power cut while the disk is slow, with fsync=always", cutPower},
}

// killServer kills a server with SIGKILL and starts it again. It comes back
// empty if it kept its data in memory. Whatever it has on disk, the library
// treats a restart as a data loss.
func killServer(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	nd, down := n.pick(r), between(r, 0, n.Plan.TTL*2)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	target := fmt.Sprintf("node %d (%s), down for %v", nd.ID, nd.Store, down.Round(time.Millisecond))
	if err := n.Memory.Lose(nd.ID); err != nil {
		return target, err
	}
	err := nd.Server.Kill()
	record.Wait(ctx, down)
	err = errors.Join(err, nd.Restart())
	n.back(nd)
	return target, err
}

// loseDisk restarts a server without its data, no matter how it stored the
// data.
func loseDisk(_ context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	nd := n.pick(r)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	target := fmt.Sprintf("node %d (%s)", nd.ID, nd.Store)
	if err := n.Memory.Lose(nd.ID); err != nil {
		return target, err
	}
	defer n.back(nd)
	return target, nd.Empty()
}

// cutServer kills a server that syncs its log each second, and removes up to
// the last second of the log.
func cutServer(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	var cuttable []*fleet.Node
	for _, nd := range n.Voters() {
		if nd.Store == fleet.Everysec {
			cuttable = append(cuttable, nd)
		}
	}
	pick, ago := r.Int(), between(r, 0, time.Second)
	if len(cuttable) == 0 {
		return "none", fmt.Errorf("%w: no node syncs its log each second", fleet.ErrSkip)
	}
	nd := cuttable[pick%len(cuttable)]
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	target := fmt.Sprintf("node %d, the last %v", nd.ID, ago.Round(time.Millisecond))
	if err := n.Memory.Lose(nd.ID); err != nil {
		return target, err
	}
	err := nd.Cut(ctx, ago)
	err = errors.Join(err, nd.Restart())
	n.back(nd)
	// The part that was cut off may include the end of the planted key.
	return target, errors.Join(err, n.uproot(context.WithoutCancel(ctx), nd))
}

func stopServer(
	length func(*Nemesis, *rand.Rand) time.Duration,
) func(context.Context, *Nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
		nd, d := n.pick(r), length(n, r)
		return fmt.Sprintf("node %d for %v", nd.ID, d.Round(time.Millisecond)), freeze(ctx, d, nd)
	}
}

func stopServers(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	ids, d := n.some(r, fleet.Minority), n.long(r)
	if len(ids) == 0 {
		return "none", errOneNode
	}
	var chosen []*fleet.Node
	for _, id := range ids {
		chosen = append(chosen, n.Nodes[id])
	}
	return fmt.Sprintf("nodes %v for %v", ids, d.Round(time.Millisecond)), freeze(ctx, d, chosen...)
}

// freeze stops servers for d. They are locked in the order of their numbers.
func freeze(ctx context.Context, d time.Duration, nodes ...*fleet.Node) (err error) {
	for _, nd := range nodes {
		nd.Mu.Lock()
		defer nd.Mu.Unlock()
		err = errors.Join(err, nd.Server.Stop())
	}
	record.Wait(ctx, d)
	for _, nd := range nodes {
		err = errors.Join(err, nd.Server.Cont())
	}
	return err
}

// onSlowDisk calls do for a node that syncs every write before it answers,
// while each sync takes long.
func (n *Nemesis) onSlowDisk(pick int, delay time.Duration, do func(*fleet.Node) error) (string, error) {
	var slow []*fleet.Node
	for _, nd := range n.Voters() {
		if nd.Store == fleet.Always {
			slow = append(slow, nd)
		}
	}
	if len(slow) == 0 {
		return "none", fmt.Errorf("%w: no node has a disk that can be slow", fleet.ErrSkip)
	}
	nd := slow[pick%len(slow)]
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	err := nd.Server.SetDisk(delay)
	return fmt.Sprintf("node %d, each sync takes %v", nd.ID, delay.Round(time.Millisecond)),
		errors.Join(err, do(nd))
}

// slowDisk makes a disk slow for a while.
func slowDisk(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	pick, delay, d := r.Int(), between(r, n.Plan.TTL/100, n.Plan.TTL/2), n.length(r)
	return n.onSlowDisk(pick, delay, func(nd *fleet.Node) error {
		record.Wait(ctx, d)
		return nd.Server.SetDisk(0)
	})
}

// cutPower kills a node, usually in the middle of a sync, and removes
// everything that is not on disk. The node had not answered any of those
// requests, but the library still treats the restart as a data loss.
func cutPower(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	pick, delay := r.Int(), between(r, n.Plan.TTL/100, n.Plan.TTL/2)
	after, down := between(r, delay, 4*delay), between(r, 0, n.Plan.TTL*2)
	var gone int64
	target, err := n.onSlowDisk(pick, delay, func(nd *fleet.Node) (err error) {
		if err := n.Memory.Lose(nd.ID); err != nil {
			return errors.Join(err, nd.Server.SetDisk(0))
		}
		defer n.back(nd)
		record.Wait(ctx, after)
		gone, err = nd.Server.CutPower()
		record.Wait(ctx, down)
		return errors.Join(err, nd.Server.SetDisk(0), nd.Restart(), n.uproot(context.WithoutCancel(ctx), nd))
	})
	return fmt.Sprintf("%s, %d bytes gone, down for %v", target, gone, down.Round(time.Millisecond)), err
}
