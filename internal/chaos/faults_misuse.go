package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

// What the library does not bear, by what it says of itself: nodes that are
// replicas of each other, and nodes that evict keys. Either takes a node's memory
// and may leave it a marker, so that it does not know. It is no part of a run
// unless it is asked for with -tracks, and counts as loss of memory there.
var misuseHarms = []harm{
	{"node made a replica of another for a while", replicate},
	{"keys evicted", evict},
}

// replicate makes a node a replica of another, and a master again. Its memory
// then is the other's.
func replicate(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	ids := r.Perm(len(n.nodes))[:2]
	nd, of, d := n.nodes[ids[0]], n.nodes[ids[1]], n.length(r)
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
	defer n.memory.back(nd.id)
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
	return target, errors.Join(err, nd.admin.Do(alive, "REPLICAOF", "NO", "ONE").Err())
}

// evict has a node throw keys away at random until half of what they take is free.
func evict(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	nd, d := n.nodes[r.IntN(len(n.nodes))], n.short(r)
	nd.mu.Lock()
	defer nd.mu.Unlock()
	target := fmt.Sprintf("node %d for %v", nd.id, d.Round(time.Millisecond))
	info, err := nd.admin.InfoMap(ctx, "memory").Result()
	if err != nil {
		return target, err
	}
	var used, keys int64
	if _, err := fmt.Sscan(info["Memory"]["used_memory"]+" "+info["Memory"]["used_memory_dataset"], &used, &keys); err != nil {
		return target, err
	}
	if err := n.memory.lose(nd.id); err != nil {
		return target, err
	}
	defer n.memory.back(nd.id)
	alive := context.WithoutCancel(ctx)
	set := func(name, value string) error { return nd.admin.ConfigSet(alive, name, value).Err() }
	err = errors.Join(set("maxmemory-policy", "allkeys-random"), set("maxmemory", fmt.Sprint(used-keys/2)))
	wait(ctx, d)
	return target, errors.Join(err, set("maxmemory", "0"), set("maxmemory-policy", "noeviction"))
}
