// Package quoratetest has nodes in the process of a test, so that code which
// takes a [quorate.Quorum] is tested without a server.
//
//	func TestOneInvoiceAtATime(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			c := quoratetest.New(t, 3)
//			a, b := c.Quorum(), c.Quorum() // two processes of the service
//			…
//		})
//	}
//
// What runs is the library as in production: only the connections lead to the
// reference node instead of Redis. In a bubble of [testing/synctest] all waits
// are of the bubble. So a lease of 8 s ends, and a guard time of 20 s passes,
// in microseconds, and a test that waits for them does not depend on how busy
// the machine is. Outside of a bubble time is real.
//
// It does not simulate Redis: other commands, [quorate.Connect], Sentinel sets
// and clusters need servers. Nodes share one clock.
package quoratetest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/testkit/memory"
)

// patience bounds what a call of this package waits for. Nodes in the process
// answer at once, so this is only against waiting without end.
const patience = time.Minute

// A Cluster is a set of nodes in the process of a test. Nodes are counted from
// 0 on. A wrong number ends the test. It is safe for concurrent use, as far as
// a [testing.TB] is: calls that end the test belong to its goroutine.
type Cluster struct {
	t       testing.TB
	nodes   memory.Nodes
	clients []redis.UniversalClient

	mu       sync.Mutex
	recorded bool // a Quorum has had the nodes record their set
	ways     map[*quorate.Quorum]*memory.Way
}

// New starts n nodes, 1 to 31, without data. In a bubble of [testing/synctest]
// call it inside of the bubble. The nodes end with the test.
func New(t testing.TB, n int) *Cluster {
	t.Helper()
	if n < 1 || n > 31 {
		t.Fatalf("quoratetest: %d nodes; give 1, 3 or 5", n)
	}
	nodes := memory.NewNodes(n)
	return &Cluster{t: t, nodes: nodes, clients: nodes.Clients(t), ways: map[*quorate.Quorum]*memory.Way{}}
}

// Quorum returns a client of the nodes, as [quorate.New] makes one. Each is
// what a process of its own would be: what is made from one excludes what is
// made from another. The options are those of New; the log is that of the test
// unless one says otherwise. The Quorum closes with the test, after what the
// test has deferred, and may be closed before.
//
// The first one has the nodes record their set, with its guard time, skew and
// retention, and so each node must be up. They vote at once. A Quorum that a
// majority of the nodes cannot serve is returned as well: its calls wait, as in
// production.
func (c *Cluster) Quorum(opts ...quorate.Option) *quorate.Quorum {
	c.t.Helper()
	way := &memory.Way{}
	log := quorate.WithLogger(slog.New(slog.NewTextHandler(c.t.Output(), nil)))
	q, err := quorate.New(c.clients, append(append([]quorate.Option{log}, opts...), c.nodes.OptionBy(way))...)
	if err != nil {
		c.t.Fatalf("quoratetest: %v", err)
	}
	c.t.Cleanup(func() { _ = q.Close() })
	c.mu.Lock()
	first := !c.recorded
	c.recorded, c.ways[q] = true, way
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if first {
		if err := q.Bootstrap(ctx); err != nil {
			c.t.Fatalf("quoratetest: the first Quorum needs all nodes: %v", err)
		}
	}
	if c.nodes.Reaches(way) > len(c.nodes)/2 {
		if err := core.CoreOf(q).Ready(ctx); err != nil {
			c.t.Fatalf("quoratetest: %v", err)
		}
	}
	return q
}

// Stop ends a node's server. Its connections break, and none can be made until
// [Cluster.Start].
func (c *Cluster) Stop(i int) { c.t.Helper(); c.node(i).Stop() }

// Start starts the server of a node again, with its data. As of a real server
// the newest writes may be lost, so the node does not vote for the guard time,
// 20 s by default. A node that was not stopped restarts.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	c.node(i).Stop()
	c.node(i).Start(true)
}

// Forget is [Cluster.Start] of a node that has lost its data. It does not vote
// for the guard time, and then until the others have repaired it.
func (c *Cluster) Forget(i int) {
	c.t.Helper()
	c.node(i).Stop()
	c.node(i).Start(false)
}

// Partition cuts a Quorum of this cluster off from the given nodes, and from no
// others: without nodes it reaches all again. The nodes keep running, and serve
// other Quorums.
func (c *Cluster) Partition(q *quorate.Quorum, nodes ...int) {
	c.t.Helper()
	c.mu.Lock()
	way := c.ways[q]
	c.mu.Unlock()
	if way == nil {
		c.t.Fatalf("quoratetest: Partition needs a Quorum of this Cluster")
	}
	var cut []*memory.Node
	for _, i := range nodes {
		cut = append(cut, c.node(i))
	}
	way.Cut(cut)
}

// Delay makes each request to a node, and each push from it, take d. Default 0.
func (c *Cluster) Delay(i int, d time.Duration) { c.t.Helper(); c.node(i).Delay(d) }

// Holders returns what holds a name now: the claims that a majority of the
// nodes votes for, lowest token first, whatever the clients think. It is one at
// most of a mutex, a running once or a leader. It asks the nodes' memory, not
// the nodes, so it also tells of nodes that are stopped or cut off. Host and
// PID are not set: all is one process.
//
// A release is on its way when Unlock returns, and so is a claim when Lock
// does, to those nodes that the lock did not need. In a bubble
// [testing/synctest.Wait] lets them arrive.
func (c *Cluster) Holders(name string) []quorate.Holder {
	var held []quorate.Holder
	for _, h := range c.nodes.Holders(name) {
		held = append(held, quorate.Holder{Token: uint64(h.Ticket) * core.MaxPasses, Left: h.Left,
			Waiters: h.Waiters})
	}
	return held
}

func (c *Cluster) node(i int) *memory.Node {
	c.t.Helper()
	if i < 0 || i >= len(c.nodes) {
		c.t.Fatalf("quoratetest: there is no node %d; nodes are 0 to %d", i, len(c.nodes)-1)
	}
	return c.nodes[i]
}
