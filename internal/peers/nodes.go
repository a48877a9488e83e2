package peers

// The list of a client's nodes, and how each node begins and ends.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/wake"
)

// NewPeers makes the Peers for a list of clients, without connecting.
func NewPeers(clients []redis.UniversalClient, set setup.Settings) *Peers {
	ps := &Peers{
		Set: set, Clock: wake.NewClock(), Channel: script.NewChannel(set.Prefix, set.Label),
		built: make(chan struct{}), Over: make(chan struct{}),
	}
	ps.Observer.f, ps.Reach.ps, ps.Seeds.base = set.Observe, ps, nodeset.Seed
	ps.Clients = setup.NewClients(clients, &ps.Set)
	ps.Members = newMembers(ps, ps.Clients.List())
	ps.Driver.init(ps)
	ps.Life, ps.End = context.WithCancel(context.Background())
	return ps
}

// Begin starts the nodes of the list. It fails if one of the clients cannot be
// a node.
func (ps *Peers) Begin(clients []redis.UniversalClient) error {
	for i, c := range clients {
		if err := ps.Seeds.Connect(ps, nodeset.Seed+i, ps.Clients.List()[i], c, false); err != nil {
			return err
		}
	}
	// From here on nodes have events. Tick sets the timer.
	close(ps.built)
	ps.Driver.tick()
	ps.Reach.begin()
	return nil
}

// Grow makes sure that there is a node for each index below size. A new one
// counts as dropped until it connects.
func (s *nodes) Grow(ps *Peers, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size <= s.Size() {
		return
	}
	list := slices.Clone(s.All())
	for i := len(list); i < size; i++ {
		n := blankNode(ps, s.base+i, "")
		n.Link = flow.ClosedLink{}
		n.Dropped.Store(true)
		n.first.Do(func() { close(n.Attempted) })
		close(n.Ended)
		list = append(list, n)
	}
	s.list.Store(&list)
}

// Connect starts the node with an index. It waits, for a bounded time, until
// earlier nodes with that index or address have ended.
func (s *nodes) Connect(ps *Peers, i int, addr string, c redis.UniversalClient, own bool) error {
	s.Grow(ps, i-s.base+1)
	// Wait without mu, because the task that ends old may wait for a node
	// timeout, and nodes.close takes mu. If Close has begun before that task
	// could start, closing ends the wait.
	for _, old := range s.All() {
		if !old.Dropped.Load() || old.Index != i && old.Addr != addr {
			continue
		}
		select {
		case <-old.Ended:
		case <-ps.Over:
			return fault.ErrClosed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.All())
	switch at := list[i-s.base]; {
	case s.closed:
		return fault.ErrClosed
	case !at.Dropped.Load(): // another call has connected it meanwhile
		return fmt.Errorf("%w: %s is in use already", fault.ErrInvalid, at.Addr)
	}
	n, err := newNode(ps, i, addr, c)
	if err != nil {
		return err
	}
	n.own = own
	list[i-s.base] = n
	s.list.Store(&list)
	close(n.placed)
	return nil
}

// Close ends all nodes at the same time, each once it has acknowledged all
// leaves or stops acknowledging them.
func (s *nodes) Close(ctx context.Context, timeout time.Duration) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	// No node is added from here on: connect sees closed under mu.
	errs := make([]error, s.Size())
	var wg sync.WaitGroup
	for i, n := range s.All() {
		wg.Go(func() {
			ctx, cancel := n.WhileAcknowledged(ctx, timeout)
			defer cancel()
			errs[i] = n.end(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func blankNode(ps *Peers, i int, addr string) *Node {
	n := &Node{
		ps: ps, Index: i, fanout: ps.Driver.Client.Fanout(), Addr: addr,
		Logger:    slog.New(report.Deduplicate(ps.Set.Logger.Handler(), new(report.RecentLines))),
		Attempted: make(chan struct{}), placed: make(chan struct{}), Ended: make(chan struct{}),
	}
	n.handshake.n, n.Writes.n = n, n
	return n
}

// newNode makes a node and returns at once: the link connects, and reconnects,
// until the node ends.
func newNode(ps *Peers, i int, addr string, c redis.UniversalClient) (*Node, error) {
	n := blankNode(ps, i, addr)
	n.client = c
	if setup.IsClusterClient(c) {
		n.Slot = script.SetKey(ps.Set.Prefix)
	}
	l, err := ps.Set.NewTransport(c, n.connection())
	if err != nil {
		return nil, fmt.Errorf("%w: node %s: %w", fault.ErrInvalid, addr, err)
	}
	n.Link = l
	return n, nil
}

// end stops everything that belongs to a node: goroutines, connections and
// timers.
func (n *Node) end(ctx context.Context) error {
	unsent := n.Drain(ctx)
	// Attempted is closed after the link, so that a call that waits for the
	// first attempt finds the error of a closed node.
	err := n.Link.Close(ctx)
	if unsent > 0 {
		err = errors.Join(fmt.Errorf("%d requests were still waiting to be sent: %w", unsent, context.Cause(ctx)),
			err)
	}
	n.first.Do(func() { close(n.Attempted) })
	if later := n.handshake.later; later != nil { // no further connection begins
		later.Stop()
	}
	if n.own {
		_ = n.client.Close() // it has no connections
	}
	return err
}

// Tried waits for the end of the first attempt to connect, so that a process
// that has just started does not report every node as down. After that attempt
// it always returns at once, even if the node is down.
func (n *Node) Tried(ctx context.Context) {
	select {
	case <-n.Attempted:
	case <-ctx.Done():
	}
}

// Mask has a bit for each node. With 32 nodes the shift leaves 0, and 0 - 1 has
// all bits.
func (s *nodes) Mask() uint32 { return 1<<s.Size() - 1 }

// Flush writes the requests that are queued for the nodes, a bit for each.
// The caller holds no lock of an attempt: Flush may write to a socket.
func (s *nodes) Flush(nodes uint32) {
	for ; nodes != 0; nodes &= nodes - 1 {
		s.At(bits.TrailingZeros32(nodes)).Link.Flush()
	}
}

// Only returns the node of a set that has exactly one, and nil for any other
// set.
func (s *nodes) Only(set uint32) *Node {
	if bits.OnesCount32(set) != 1 {
		return nil
	}
	return s.At(bits.TrailingZeros32(set))
}

// Read lets a caller read the node's answers itself; see [transport.Transport].
// With a quorum of more than one node a caller cannot read all answers itself,
// so n is nil then.
func (n *Node) Read(until <-chan struct{}) {
	if n != nil {
		n.Link.Read(until)
	}
}
