package fleet

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/samber/lo"
)

// How a node keeps its data.
const (
	InMemory = "memory"
	Everysec = "everysec"
	Always   = "always"
	Mixed    = "mixed" // a different one of these for each node
)

// Node is one server.
// Invariant: a fault changes the node only while it holds mu.
type Node struct {
	ID      int
	Store   string
	cluster *redistest.Cluster
	Server  *redistest.Server
	Admin   *redis.Client

	Mu   sync.Mutex
	Rate float64 // speed of its clock
}

// adminName distinguishes the harness's connections from those of clients.
const adminName = "chaos"

// Start starts count servers, each set up for the faults of the run.
func Start(count int, store string, clocks bool) ([]*Node, error) {
	nodes, errs := make([]*Node, count), make([]error, count)
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() { nodes[i], errs[i] = startNode(i, store, clocks) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, Close(lo.Compact(nodes)))
	}
	return nodes, nil
}

func startNode(i int, store string, clocks bool) (nd *Node, err error) {
	nd = &Node{ID: i, Store: store, Rate: 1}
	if nd.Store == Mixed {
		nd.Store = []string{InMemory, Everysec, Always}[i%3]
	}
	var opts []redistest.Option
	if nd.Store != InMemory {
		opts = append(opts, redistest.WithAOF(nd.Store))
	}
	if clocks {
		opts = append(opts, redistest.WithClock())
	}
	if nd.Store == Always {
		opts = append(opts, redistest.WithDisk())
	}
	if nd.cluster, err = redistest.Run(1, opts...); err != nil {
		return nil, err
	}
	nd.Server = nd.cluster.Node(0)
	nd.Admin = connectAdmin(nd.Server.Addr())
	return nd, nil
}

// connectAdmin returns a connection for the harness.
func connectAdmin(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, ClientName: adminName, PoolSize: 1, DialTimeout: time.Second, ReadTimeout: time.Second,
		MaxRetries:               -1,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Close ends the servers.
func Close(nodes []*Node) error {
	errs := lo.Map(nodes, func(n *Node, _ int) error {
		return errors.Join(n.Admin.Close(),
			n.cluster.Close())
	})
	return errors.Join(errs...)
}

// ownKeys matches the keys that a node keeps about itself: its marker and its
// set.
var ownKeys = regexp.MustCompile(`^quorate:\{\}:`)

// recorded returns what the node has recorded about its set.
func (n *Node) recorded(ctx context.Context) (nodeset.NodeSet, error) {
	text, err := n.Admin.Get(ctx, script.SetKey(prefix)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nodeset.NodeSet{}, err
	}
	set, _ := nodeset.ParseNodeSet(text)
	return set, nil
}

// KnowsSet reports whether the server still has its record of the set.
func (n *Node) KnowsSet() bool {
	known := false
	_ = Insist(func() error {
		count, err := n.Admin.Exists(context.Background(), script.SetKey(prefix)).Result()
		known = count > 0
		return err
	})
	return known
}

// prefix is the prefix of all keys.
const prefix = "quorate"

// fence matches what a node may keep for a name without claims: the highest
// ticket, and the id of its claim.
var fence = regexp.MustCompile(`^R\d+ [0-9a-f]+`)

// recordKey matches the key of a name's permanent record.
var recordKey = regexp.MustCompile(`\}(:n)?:r$`)

// contents returns a key's value and expiry, to explain a key that should be
// gone.
var contents = redis.NewScript(`
local kind, more = redis.call('TYPE', KEYS[1]).ok, ', for ' .. redis.call('PTTL', KEYS[1]) .. ' ms'
if kind == 'string' then
	local v = redis.call('GET', KEYS[1])
	return string.sub(v, 1, 1) == 'R' and v or v .. more
elseif kind == 'hash' then return table.concat(redis.call('HGETALL', KEYS[1]), ' ') .. more
elseif kind == 'zset' then return table.concat(redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'),
	' ') .. more
elseif kind == 'none' then return false
end
return kind .. more`)

// Leftovers returns what should not be on the server after all clients have
// ended: connections, and keys other than fences and records. A server that has
// left the set may keep its keys.
func (n *Node) Leftovers(ctx context.Context, member bool) ([]string, error) {
	list, err := n.Admin.ClientList(ctx).Result()
	if err != nil {
		return nil, err
	}
	var left []string
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " name="+adminName+" ") {
			left = append(left, "connection "+strings.TrimSpace(line))
		}
	}
	if !member {
		return left, nil
	}
	keys, err := n.Admin.Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if ownKeys.MatchString(k) || recordKey.MatchString(k) {
			continue
		}
		// If a client was killed or cut off and nobody uses the name again, its
		// claim stays until the key expires, by a clock that may have been set
		// back. Only the rounds of once stop using a name.
		if strings.Contains(k, "once-") {
			if left, err := n.Admin.PTTL(ctx, k).Result(); err == nil && left != -1 {
				continue
			}
		}
		v, err := contents.Run(ctx, n.Admin, []string{k}).Text()
		switch {
		case errors.Is(err, redis.Nil): // gone in the meantime
		case err != nil:
			return nil, err
		case !fence.MatchString(v):
			left = append(left, fmt.Sprintf("key %s = %s", k, v))
		}
	}
	return left, nil
}

// Insist tries to undo a fault, up to twenty times: on a busy machine a server
// may not answer in time.
func Insist(undo func() error) (err error) {
	for range 20 {
		if err = undo(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}
