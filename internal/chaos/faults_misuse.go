package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// What the library does not bear, by what it says of itself: nodes that evict
// keys. That takes a part of a node's data and may leave it the marker, so that
// no client ever notices. It is no part of a run unless it is asked for with
// -tracks, and counts as loss of memory there.
var misuseHarms = []harm{
	{"keys evicted", evict},
}

// evict has a node throw keys away at random until half of what they take is
// free.
func evict(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
	nd, d := n.pick(r), n.short(r)
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
	defer n.back(nd)
	alive := context.WithoutCancel(ctx)
	set := func(name, value string) error { return nd.admin.ConfigSet(alive, name, value).Err() }
	err = errors.Join(set("maxmemory-policy", "allkeys-random"), set("maxmemory", fmt.Sprint(used-keys/2)))
	wait(ctx, d)
	return target, errors.Join(err, set("maxmemory", "0"), set("maxmemory-policy", "noeviction"))
}
