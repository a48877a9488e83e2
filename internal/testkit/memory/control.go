package memory

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
)

// What a test can do to nodes.

// Nodes are independent nodes, as a quorum needs them.
type Nodes []*Node

// NewNodes returns n nodes without data.
func NewNodes(n int) Nodes {
	nodes := make(Nodes, n)
	for i := range nodes {
		nodes[i] = NewNode()
	}
	return nodes
}

func addr(i int) string { return fmt.Sprintf("memory:%d", i+1) }

// Clients returns what quorate.New takes as nodes. They never connect, and are
// closed when the test ends.
func (ns Nodes) Clients(t testing.TB) []redis.UniversalClient {
	clients := make([]redis.UniversalClient, len(ns))
	for i := range ns {
		clients[i] = redis.NewClient(&redis.Options{
			Addr: addr(i), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() { _ = clients[i].Close() })
	}
	return clients
}

// Option connects a Quorum of Clients to the nodes.
func (ns Nodes) Option() quorate.Option { return ns.OptionBy(&Way{}) }

// OptionBy connects one Quorum of Clients to the nodes through its own Way.
func (ns Nodes) OptionBy(w *Way) quorate.Option {
	return core.Option(func(s *setup.Settings) {
		s.Connect = func(client redis.UniversalClient, cfg transport.Config) (transport.Transport, error) {
			if n := ns.of(client, addr); n != nil {
				return w.open(n, cfg), nil
			}
			return nil, fmt.Errorf("%w: not a client of these nodes", quorate.ErrInvalid)
		}
	}).(quorate.Option)
}

// of returns the node that a client is for, or nil.
func (ns Nodes) of(client redis.UniversalClient, addr func(int) string) *Node {
	c, is := client.(*redis.Client)
	for i, n := range ns {
		if is && c.Options().Addr == addr(i) {
			return n
		}
	}
	return nil
}

// numeric is an address from the block reserved for documentation, because
// go-redis looks up host names when it creates a client.
func numeric(i int) string { return fmt.Sprintf("192.0.2.%d:6379", i+1) }

// Serve has each Quorum of this process that is given the addresses which it
// returns reach the nodes. It must be called before the first is made.
func (ns Nodes) Serve() (addrs []string) {
	setup.InProcess = func(client redis.UniversalClient, cfg transport.Config) transport.Transport {
		if n := ns.of(client, numeric); n != nil {
			return (&Way{}).open(n, cfg)
		}
		return nil
	}
	for i := range ns {
		addrs = append(addrs, numeric(i))
	}
	return addrs
}

// Freeze makes the node execute nothing until Thaw. Its connections stay open.
func (n *Node) Freeze() { n.freeze(true) }

// Thaw ends Freeze.
func (n *Node) Thaw() { n.freeze(false) }

func (n *Node) freeze(frozen bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen = frozen
	n.change(func(t *Transport) { t.frozen = frozen })
}

// Delay makes each request to the node, each push from it and each new
// connection take d.
func (n *Node) Delay(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
	n.change(func(t *Transport) { t.delay = d })
}

// SetClock sets how far the node's clock is ahead of this process's clock.
func (n *Node) SetClock(ahead time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ahead = ahead
}

// change changes all connections to the node. Called with n.mu held.
func (n *Node) change(f func(t *Transport)) {
	for _, t := range n.listeners {
		t.change(func() { f(t) })
	}
}

// Cut breaks all connections to the node. Clients connect again.
func (n *Node) Cut() { n.cut(errCut) }

// Stop breaks all connections to the node, and keeps clients from connecting
// until Start.
func (n *Node) Stop() {
	n.mu.Lock()
	n.down = errStopped
	n.mu.Unlock()
	n.cut(errStopped)
}

// Start ends Stop. Unless keep is set, the node has lost its data.
func (n *Node) Start(keep bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down, n.server.RunID = nil, newRun()
	if !keep {
		n.server.Lose()
	}
	n.change(func(*Transport) {})
}

func (n *Node) cut(cause error) {
	n.mu.Lock()
	all := slices.Clone(n.listeners)
	n.mu.Unlock()
	for _, t := range all {
		t.Reconnect(cause)
	}
}

// Size returns how many claims the node keeps, of all names.
func (n *Node) Size() (claims int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range n.server.Model.Names() {
		claims += len(n.server.Model.Name(name).Claims(n.millis()))
	}
	return claims
}

// greet returns what the node says at the start of a connection.
func (n *Node) greet() (*transport.Info, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down != nil {
		return nil, n.down
	}
	return &transport.Info{RunID: n.server.RunID, Version: "7.0.0", Role: "master", RoundTrip: max(1, n.delay)},
		nil
}

func (n *Node) join(t *Transport) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t.frozen, t.delay = n.frozen, n.delay
	n.listeners = append(n.listeners, t)
}

func (n *Node) part(t *Transport) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners = slices.DeleteFunc(n.listeners, func(o *Transport) bool { return o == t })
}
