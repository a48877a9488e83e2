package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is how many slots a Redis Cluster has.
const slots = 16384

// clusterNodeTimeout is after how long without an answer a server of a Sharded
// counts as down.
const clusterNodeTimeout = time.Second

// A Sharded is a Redis Cluster: servers 0, 1, … are masters, each with as many
// slots as the others, and as many replicas follow, in the same order.
type Sharded struct {
	*Cluster
	masters int
}

// StartSharded runs a Redis Cluster for a test. It returns when the cluster
// serves all slots and a replica can take over.
func StartSharded(t testing.TB, masters int, replicated bool) *Sharded {
	t.Helper()
	n := masters
	if replicated {
		n *= 2
	}
	s := &Sharded{masters: masters, Cluster: Start(t, n, inClusterMode()...)}
	if err := s.join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// RunSharded is StartSharded without replicas, for what is no test. The caller
// closes it.
func RunSharded(ctx context.Context, masters int) (*Sharded, error) {
	c, err := Run(masters, inClusterMode()...)
	if err != nil {
		return nil, err
	}
	s := &Sharded{masters: masters, Cluster: c}
	if err := s.join(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

func inClusterMode() []Option {
	return []Option{withBus, WithArgs(
		"--cluster-enabled", "yes", "--cluster-node-timeout",
		strconv.FormatInt(clusterNodeTimeout.Milliseconds(), 10),
		"--repl-diskless-sync-delay", "0")}
}

// withBus gives each server a port for the cluster's bus. By default that is
// the server's own plus 10,000, which may be another server's.
func withBus(c *config) { c.bus = true }

func (s *Sharded) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*startTimeout)
	defer cancel()
	first := s.Node(0)
	for i := range s.Len() {
		c := s.Node(i).Client()
		if err := c.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
		if i < s.masters {
			if err := c.ClusterAddSlotsRange(ctx, i*slots/s.masters, (i+1)*slots/s.masters-1).Err(); err != nil {
				return err
			}
		}
		if i > 0 {
			if err := c.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", first.port, first.bus).Err(); err != nil {
				return err
			}
		}
	}
	if err := until(ctx, "the servers know each other", func() bool {
		for i := range s.Len() {
			if s.info(ctx, i)["cluster_known_nodes"] != strconv.Itoa(s.Len()) {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	for i := s.masters; i < s.Len(); i++ {
		id, err := s.Node(i - s.masters).Client().ClusterMyID(ctx).Result()
		if err != nil {
			return err
		}
		replica := s.Node(i).Client()
		if err := replica.ClusterReplicate(ctx, id).Err(); err != nil {
			return err
		}
		if err := AwaitReplica(ctx, replica); err != nil {
			return err
		}
	}
	return until(ctx, "the cluster serves all slots", func() bool { return s.Complete(ctx) })
}

// Complete reports whether each server that runs knows a cluster that serves
// all slots and has its replicas.
func (s *Sharded) Complete(ctx context.Context) bool {
	for i := range s.Len() {
		if !s.Node(i).Running() {
			continue
		}
		shards, err := s.Node(i).Client().ClusterShards(ctx).Result()
		if s.info(ctx, i)["cluster_state"] != "ok" || err != nil {
			return false
		}
		for _, shard := range shards {
			if len(shard.Slots) > 0 && s.Len() > s.masters && len(shard.Nodes) < 2 {
				return false
			}
		}
	}
	return true
}

func (s *Sharded) info(ctx context.Context, i int) map[string]string {
	text, err := s.Node(i).Client().ClusterInfo(ctx).Result()
	if err != nil {
		return nil
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[k] = v
	}
	return info
}

// URL is that of the cluster.
func (s *Sharded) URL() string {
	url := "redis+cluster://" + s.Node(0).Addr()
	if s.Len() > 1 {
		url += "?addr=" + strings.Join(s.Addrs()[1:], "&addr=")
	}
	return url
}

// Client is a client of the cluster, which the caller closes.
func (s *Sharded) Client() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.Addrs()})
}

// Slot is the slot of a key.
func (s *Sharded) Slot(ctx context.Context, key string) (int, error) {
	for i := range s.Len() {
		if s.Node(i).Running() {
			n, err := s.Node(i).Client().ClusterKeySlot(ctx, key).Result()
			return int(n), err
		}
	}
	return 0, ErrClosed
}

// Master is the server that has a slot, as the servers that run say.
func (s *Sharded) Master(ctx context.Context, slot int) (*Server, error) {
	for i := range s.Len() {
		if !s.Node(i).Running() {
			continue
		}
		shards, err := s.Node(i).Client().ClusterShards(ctx).Result()
		if err != nil {
			continue
		}
		for _, shard := range shards {
			if !slices.ContainsFunc(shard.Slots,
				func(r redis.SlotRange) bool { return r.Start <= int64(slot) && int64(slot) <= r.End }) {
				continue
			}
			for _, n := range shard.Nodes {
				at := slices.IndexFunc(s.servers, func(o *Server) bool { return int64(o.port) == n.Port })
				if at >= 0 && n.Role == "master" && n.Health == "online" {
					return s.servers[at], nil
				}
			}
		}
	}
	return nil, fmt.Errorf("redistest: no server says who has slot %d", slot)
}

// A Move is a slot that is being moved from one server to another.
type Move struct {
	Slot     int
	From, To *Server
	fromID   string
	toID     string
	s        *Sharded
}

// BeginMove begins to move a slot to another server, which gets none of its
// keys yet.
func (s *Sharded) BeginMove(ctx context.Context, slot int, to *Server) (*Move, error) {
	from, err := s.Master(ctx, slot)
	if err != nil {
		return nil, err
	}
	m := &Move{Slot: slot, From: from, To: to, s: s}
	if m.fromID, err = from.Client().ClusterMyID(ctx).Result(); err != nil {
		return nil, err
	}
	if m.toID, err = to.Client().ClusterMyID(ctx).Result(); err != nil {
		return nil, err
	}
	if err := to.Client().Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.fromID).Err(); err != nil {
		return nil, err
	}
	return m, from.Client().Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.toID).Err()
}

// Keys are those of the slot that have not moved yet.
func (m *Move) Keys(ctx context.Context) ([]string, error) {
	return m.From.Client().ClusterGetKeysInSlot(ctx, m.Slot, 1000).Result()
}

// Key moves one key.
func (m *Move) Key(ctx context.Context, key string) error {
	_, err := m.From.Client().Do(ctx, "MIGRATE", "127.0.0.1", m.To.port, key, 0, 5000).Result()
	return err
}

// End moves what is left, and gives the slot to the other server.
func (m *Move) End(ctx context.Context) error {
	for {
		keys, err := m.Keys(ctx)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		for _, k := range keys {
			if err := m.Key(ctx, k); err != nil {
				return err
			}
		}
	}
	errs := []error{m.To.Client().Do(ctx, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.toID).Err()}
	errs = append(errs, m.From.Client().Do(ctx, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.toID).Err())
	for i := range m.s.Len() {
		if n := m.s.Node(i); n != m.From && n != m.To && n.Running() {
			_ = n.Client().Do(ctx, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.toID).Err() // a replica refuses
		}
	}
	return errors.Join(errs...)
}
