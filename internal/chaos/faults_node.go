package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// What is done to servers.
var serverHarms = []harm{
	{"server killed and restarted", killServer},
	{"server stopped for less than a ttl", stopServer((*nemesis).short)},
	{"server killed, the end of its log cut off", cutServer},
	{"server stopped for more than a ttl", stopServer((*nemesis).long)},
	{"minority of servers stopped for more than a ttl", stopServers},
	{"disk slow, with fsync=always", slowDisk},
	{"power cut while the disk is slow, with fsync=always", cutPower},
}

// killServer kills one with SIGKILL and starts it again, empty if it kept its
// data in memory. Whatever it has on its disk, the library takes a restart for
// a loss.
func killServer(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	nd, down := n.pick(r), between(r, 0, n.plan.TTL*2)
	nd.mu.Lock()
	defer nd.mu.Unlock()
	target := fmt.Sprintf("node %d (%s), down for %v", nd.id, nd.store, down.Round(time.Millisecond))
	if err := n.memory.lose(nd.id); err != nil {
		return target, err
	}
	err := nd.server.Kill()
	wait(ctx, down)
	err = errors.Join(err, nd.restart())
	n.back(nd)
	return target, err
}

// cutServer kills one that syncs its log each second, and takes away what it
// has written in up to that second.
func cutServer(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	var cuttable []*node
	for _, nd := range n.voters() {
		if nd.store == everysec {
			cuttable = append(cuttable, nd)
		}
	}
	pick, ago := r.Int(), between(r, 0, time.Second)
	if len(cuttable) == 0 {
		return "none", fmt.Errorf("%w: no node syncs its log each second", errSkip)
	}
	nd := cuttable[pick%len(cuttable)]
	nd.mu.Lock()
	defer nd.mu.Unlock()
	target := fmt.Sprintf("node %d, the last %v", nd.id, ago.Round(time.Millisecond))
	if err := n.memory.lose(nd.id); err != nil {
		return target, err
	}
	err := nd.cut(ctx, ago)
	err = errors.Join(err, nd.restart())
	n.back(nd)
	// What was cut off may be the end of what was planted here.
	return target, errors.Join(err, n.uproot(context.WithoutCancel(ctx), nd))
}

func stopServer(length func(*nemesis, *rand.Rand) time.Duration) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		nd, d := n.pick(r), length(n, r)
		return fmt.Sprintf("node %d for %v", nd.id, d.Round(time.Millisecond)), freeze(ctx, d, nd)
	}
}

func stopServers(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	ids, d := n.some(r, minority), n.long(r)
	var chosen []*node
	for _, id := range ids {
		chosen = append(chosen, n.nodes[id])
	}
	return fmt.Sprintf("nodes %v for %v", ids, d.Round(time.Millisecond)), freeze(ctx, d, chosen...)
}

// freeze stops servers for d. They are locked in the order of their numbers.
func freeze(ctx context.Context, d time.Duration, nodes ...*node) (err error) {
	for _, nd := range nodes {
		nd.mu.Lock()
		defer nd.mu.Unlock()
		err = errors.Join(err, nd.server.Stop())
	}
	wait(ctx, d)
	for _, nd := range nodes {
		err = errors.Join(err, nd.server.Cont())
	}
	return err
}

// What is done to data.
var dataHarms = []harm{
	{"FLUSHALL", flush},
	{"SCRIPT FLUSH", flushScripts},
	{"key of another type in the way", plant},
	{"node made a replica of another for a while", replicate},
}

func flush(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	nd := n.pick(r)
	nd.mu.Lock()
	defer nd.mu.Unlock()
	target := fmt.Sprintf("node %d", nd.id)
	if err := n.memory.lose(nd.id); err != nil {
		return target, err
	}
	// Whether or not the answer comes, it may have been done.
	defer n.back(nd)
	return target, nd.admin.FlushAll(context.WithoutCancel(ctx)).Err()
}

func flushScripts(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	nd := n.pick(r)
	nd.mu.Lock()
	defer nd.mu.Unlock()
	return fmt.Sprintf("node %d", nd.id), nd.admin.ScriptFlush(context.WithoutCancel(ctx)).Err()
}

// A list is put where a mutex wants its redlock key, if that is not there: what
// is would be memory, and no other program may throw it away.
var (
	plantScript  = redis.NewScript(`if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end return redis.call('RPUSH', KEYS[1], 'x')`)
	uprootScript = redis.NewScript(`if redis.call('TYPE', KEYS[1]).ok == 'list' then return redis.call('DEL', KEYS[1]) end return 0`)
)

func plant(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	all := n.plan.plain()
	nd, name, d := n.pick(r), all[r.IntN(len(all))], n.long(r)
	nd.mu.Lock()
	defer nd.mu.Unlock()
	target := fmt.Sprintf("%s on node %d for %v", name, nd.id, d.Round(time.Millisecond))
	alive := context.WithoutCancel(ctx)
	for {
		done, err := plantScript.Run(alive, nd.admin, []string{name}).Int()
		if err != nil { // the key may be there all the same
			return target, errors.Join(err, n.uproot(alive, nd))
		}
		if done > 0 {
			break
		}
		if wait(ctx, time.Millisecond); ctx.Err() != nil {
			return target, fmt.Errorf("%w: the key is never free", errSkip)
		}
	}
	wait(ctx, d)
	return target, n.uproot(alive, nd)
}

func (n *nemesis) uproot(ctx context.Context, nd *node) (err error) {
	for _, name := range n.plan.plain() {
		err = errors.Join(err, insist(func() error { return uprootScript.Run(ctx, nd.admin, []string{name}).Err() }))
	}
	return err
}

// replicate makes a node a replica of another, and a master again. Its memory
// then is the other's, and the marker in it says that all is well. It is a copy
// of that node then, and refused, until an operator empties it.
func replicate(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	ids := n.shuffled(r)[:2]
	nd, of, d, after := n.nodes[ids[0]], n.nodes[ids[1]], n.length(r), n.length(r)
	nd.mu.Lock()
	defer nd.mu.Unlock()
	target := fmt.Sprintf("node %d, of node %d, for at least %v", nd.id, of.id, d.Round(time.Millisecond))
	host, port, err := net.SplitHostPort(of.server.Addr())
	if err != nil {
		return target, err
	}
	if err := n.memory.lose(nd.id); err != nil {
		return target, err
	}
	defer n.back(nd)
	own, err := nd.marker()
	if err != nil {
		return target, err
	}
	alive := context.WithoutCancel(ctx)
	err = errors.Join(
		of.admin.ConfigSet(alive, "repl-diskless-sync-delay", "0").Err(), // or it begins after the ttl only
		nd.admin.Do(alive, "REPLICAOF", host, port).Err())
	for end := time.Now().Add(10 * n.plan.TTL); err == nil && time.Now().Before(end); wait(ctx, 10*time.Millisecond) {
		text, ierr := nd.admin.Info(alive, "replication").Result()
		if ctx.Err() != nil || ierr == nil && strings.Contains(text, "master_link_status:up") {
			break
		}
	}
	wait(ctx, d)
	if got, kerr := nd.marker(); kerr != nil || got.incarnation != own.incarnation {
		err = errors.Join(err, kerr, n.memory.pretend(nd.id))
	}
	err = errors.Join(err, insist(func() error { return nd.admin.Do(alive, "REPLICAOF", "NO", "ONE").Err() }))
	wait(ctx, after)
	return target, errors.Join(err, nd.empty())
}

// What is done to clients.
var clientHarms = []harm{
	{"client stopped for more than a ttl", stopClient((*nemesis).long)},
	{"client killed and restarted", killClient},
	{"client stopped for less than a ttl", stopClient((*nemesis).short)},
	{"holders evicted by an operator", evictHolders},
}

func killClient(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	c, down := n.clients[r.IntN(len(n.clients))], between(r, 0, n.plan.TTL*2)
	target := fmt.Sprintf("client %d, down for %v", c.id, down.Round(time.Millisecond))
	if err := c.kill(); err != nil {
		return target, err
	}
	wait(ctx, down)
	return target, c.start()
}

func stopClient(length func(*nemesis, *rand.Rand) time.Duration) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		c, d := n.clients[r.IntN(len(n.clients))], length(n, r)
		target := fmt.Sprintf("client %d for %v", c.id, d.Round(time.Millisecond))
		err := c.signal(syscall.SIGSTOP)
		wait(ctx, d)
		return target, errors.Join(err, c.signal(syscall.SIGCONT))
	}
}

// list writes numbers as one reads them.
func list(ids []int) string { return strings.Trim(fmt.Sprint(ids), "[]") }
