package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/redis/go-redis/v9"
)

// Faults of data.
var dataHarms = []harm{
	{"FLUSHALL", flush},
	{"SCRIPT FLUSH", flushScripts},
	{"key of another type in the way", plant},
	{"node made a replica of another for a while", replicate},
}

func flush(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	nd := n.pick(r)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	target := fmt.Sprintf("node %d", nd.ID)
	if err := n.Memory.Lose(nd.ID); err != nil {
		return target, err
	}
	// The command may have been carried out, whether or not the answer arrives.
	defer n.back(nd)
	return target, nd.Admin.FlushAll(context.WithoutCancel(ctx)).Err()
}

func flushScripts(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	nd := n.pick(r)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	return fmt.Sprintf("node %d", nd.ID), nd.Admin.ScriptFlush(context.WithoutCancel(ctx)).Err()
}

// A list is put in the place of a mutex's redlock key if that key does not
// exist. An existing key is data of the library, which no other program may
// delete.
var (
	plantScript  = redis.NewScript(`if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end return redis.call('RPUSH', KEYS[1], 'x')`)
	uprootScript = redis.NewScript(`if redis.call('TYPE', KEYS[1]).ok == 'list' then return redis.call('DEL', KEYS[1]) end return 0`)
)

func plant(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	all := n.Plan.plain()
	nd, name, d := n.pick(r), all[r.IntN(len(all))], n.long(r)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	target := fmt.Sprintf("%s on node %d for %v", name, nd.ID, d.Round(time.Millisecond))
	alive := context.WithoutCancel(ctx)
	for {
		done, err := plantScript.Run(alive, nd.Admin, []string{name}).Int()
		if err != nil { // the key may still have been written
			return target, errors.Join(err, n.uproot(alive, nd))
		}
		if done > 0 {
			break
		}
		if record.Wait(ctx, time.Millisecond); ctx.Err() != nil {
			return target, fmt.Errorf("%w: the key is never free", fleet.ErrSkip)
		}
	}
	record.Wait(ctx, d)
	return target, n.uproot(alive, nd)
}

func (n *Nemesis) uproot(ctx context.Context, nd *fleet.Node) (err error) {
	for _, name := range n.Plan.plain() {
		err = errors.Join(err, fleet.Insist(func() error {
			return uprootScript.Run(ctx, nd.Admin,
				[]string{name}).Err()
		}))
	}
	return err
}

// replicate makes a node a replica of another one, and then a master again. It
// now has the other node's data, including a marker that says that nothing is
// missing. Clients refuse it as a copy of that node until an operator empties
// it.
func replicate(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	ids := n.shuffled(r)
	if len(ids) < 2 {
		return "none", errOneNode
	}
	nd, of, d, after := n.Nodes[ids[0]], n.Nodes[ids[1]], n.length(r), n.length(r)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	target := fmt.Sprintf("node %d, of node %d, for at least %v", nd.ID, of.ID, d.Round(time.Millisecond))
	host, port, err := net.SplitHostPort(of.Server.Addr())
	if err != nil {
		return target, err
	}
	if err := n.Memory.Lose(nd.ID); err != nil {
		return target, err
	}
	defer n.back(nd)
	own, err := nd.Marker()
	if err != nil {
		return target, err
	}
	alive := context.WithoutCancel(ctx)
	err = errors.Join(
		// Otherwise the replication begins only after the ttl.
		of.Admin.ConfigSet(alive, "repl-diskless-sync-delay", "0").Err(),
		nd.Admin.Do(alive, "REPLICAOF", host, port).Err())
	for end := time.Now().Add(10 * n.Plan.TTL); err == nil &&
		time.Now().Before(end); record.Wait(ctx, 10*time.Millisecond) {
		text, ierr := nd.Admin.Info(alive, "replication").Result()
		if ctx.Err() != nil || ierr == nil && strings.Contains(text, "master_link_status:up") {
			break
		}
	}
	record.Wait(ctx, d)
	if got, kerr := nd.Marker(); kerr != nil || got.Incarnation != own.Incarnation {
		err = errors.Join(err, kerr, n.Memory.Pretend(nd.ID))
	}
	err = errors.Join(err,
		fleet.Insist(func() error { return nd.Admin.Do(alive, "REPLICAOF", "NO", "ONE").Err() }))
	record.Wait(ctx, after)
	return target, errors.Join(err, nd.Empty())
}

// Misuse that the library's documentation excludes: nodes that evict keys. A
// node may lose part of its data and keep its marker, so that no client ever
// notices. This track runs only if it is named with
// -tracks, and counts as data loss there.
var misuseHarms = []harm{
	{"keys evicted", evict},
}

// evict makes a node evict random keys until it has freed half of their memory.
func evict(ctx context.Context, n *Nemesis, r *rand.Rand) (string, error) {
	nd, d := n.pick(r), n.short(r)
	nd.Mu.Lock()
	defer nd.Mu.Unlock()
	target := fmt.Sprintf("node %d for %v", nd.ID, d.Round(time.Millisecond))
	info, err := nd.Admin.InfoMap(ctx, "memory").Result()
	if err != nil {
		return target, err
	}
	var used, keys int64
	if _, err := fmt.Sscan(info["Memory"]["used_memory"]+" "+info["Memory"]["used_memory_dataset"],
		&used, &keys); err != nil {
		return target, err
	}
	if err := n.Memory.Lose(nd.ID); err != nil {
		return target, err
	}
	defer n.back(nd)
	alive := context.WithoutCancel(ctx)
	set := func(name, value string) error { return nd.Admin.ConfigSet(alive, name, value).Err() }
	err = errors.Join(set("maxmemory-policy", "allkeys-random"), set("maxmemory", fmt.Sprint(used-keys/2)))
	record.Wait(ctx, d)
	return target, errors.Join(err, set("maxmemory", "0"), set("maxmemory-policy", "noeviction"))
}
