// Package quoratetest runs nodes inside the test process, so that you can test
// code that takes a [quorate.Quorum] without a server.
//
//	func TestOneInvoiceAtATime(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			c := quoratetest.New(t, 3)
//			a, b := c.Quorum(), c.Quorum() // two processes of the service
//			…
//		})
//	}
//
// The library runs as it does in production, except that it connects to
// simulated nodes instead of Redis. Inside a [testing/synctest] bubble,
// everything uses the bubble's fake time. So an 8 s lease or a 20 s guard time
// passes in microseconds, and tests do not depend on how busy the machine is.
// Outside a bubble, time is real.
//
// It does not simulate Redis itself: for other commands, [quorate.Connect],
// Sentinel sets and clusters, you need real servers. All nodes share one clock.
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

// A Cluster is a set of nodes inside the test process. Nodes are numbered from
// 0, and an invalid number fails the test. A Cluster is as safe for concurrent
// use as a [testing.TB]: only the test's own goroutine may make calls that fail
// the test.
type Cluster struct {
	t       testing.TB
	nodes   memory.Nodes
	clients []redis.UniversalClient

	mu       sync.Mutex
	recorded bool // a Quorum has had the nodes record their set
	ways     map[*quorate.Quorum]*memory.Way
}

// New starts n empty nodes, from 1 to 31. To use them in a [testing/synctest]
// bubble, call New inside the bubble. The nodes stop when the test ends.
func New(t testing.TB, n int) *Cluster {
	t.Helper()
	if n < 1 || n > 31 {
		t.Fatalf("quoratetest: %d nodes: use 1, 3 or 5", n)
	}
	nodes := memory.NewNodes(n)
	return &Cluster{t: t, nodes: nodes, clients: nodes.Clients(t), ways: map[*quorate.Quorum]*memory.Way{}}
}

// Quorum returns a client of the nodes, as [quorate.New] does. Each Quorum acts
// as a separate process: locks created from one Quorum exclude those created
// from another. The options are the same as for New, except that by default the
// log goes to the test. The Quorum is closed when the test ends, after the
// test's deferred calls, but you may close it earlier.
//
// The first Quorum has the nodes record their set, with its guard time, skew
// and retention, so all nodes must be up. They vote immediately. Quorum
// succeeds even if a majority of the nodes cannot serve the client; the
// client's calls then wait, as in production.
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

// Stop stops a node. Its connections break, and nothing can connect to it until
// you call [Cluster.Start].
func (c *Cluster) Stop(i int) { c.t.Helper(); c.node(i).Stop() }

// Start starts a node again, with its data. As with a real server, its latest
// writes may be lost, so the node does not vote until the guard time, 20 s by
// default, has passed. A node that is still running restarts.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	c.node(i).Stop()
	c.node(i).Start(true)
}

// Forget is like [Cluster.Start], but the node has lost its data. It does not
// vote until the guard time has passed and the other nodes have repaired it.
func (c *Cluster) Forget(i int) {
	c.t.Helper()
	c.node(i).Stop()
	c.node(i).Start(false)
}

// Partition cuts a Quorum of this cluster off from exactly the given nodes. If
// no nodes are given, the Quorum can reach all of them again. The nodes keep
// running and serve other Quorums.
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

// Delay makes each request to a node, and each push from it, take d. The
// default is 0.
func (c *Cluster) Delay(i int, d time.Duration) { c.t.Helper(); c.node(i).Delay(d) }

// Holders returns the current holders of a name: the claims that a majority of
// the nodes votes for, lowest token first, no matter what the clients believe.
// There is at most one for a mutex, a running once or a leader. Holders reads
// the nodes' memory instead of sending requests, so it includes nodes that are
// stopped or cut off. Host and PID are not set, because everything runs in one
// process.
//
// When Unlock returns, the release may not have reached the nodes yet. When
// Lock returns, the claim may not have reached the nodes that the lock did not
// need. In a bubble, call [testing/synctest.Wait] first to wait for both.
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
