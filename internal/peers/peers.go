package peers

// This file owns what the connections to all nodes share.

import (
	"context"
	"crypto/rand"
	"math/bits"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
	"github.com/quorate/quorate/internal/wake"
)

// Peers are one client's nodes, and what they share. It is safe for concurrent
// use: NewPeers sets its fields, and each part that changes later has a lock of
// its own, named at its type.
type Peers struct {
	Set        setup.Settings
	Claims     claims
	Nodes      nodes                          // of its set, by number
	Seeds      nodes                          // of its list, from nodeset.Seed on
	connection func(n *Node) transport.Config // Node.connection: its events stand above all that they use
	Channel    string                         // pushes to this client, on every node
	Clock      *wake.Clock
	built      chan struct{} // closed when Seeds is complete: see awaitPlace
	Over       chan struct{} // closed when Close begins
	recovering recovering
	Reach      reach
	Tasks      tasks
	Observer   observer
	Driver     driver
	Members    *members
	Life       context.Context // of what goes on beside callers; it ends when the client closes
	End        context.CancelFunc
	Clients    *setup.Clients
}

// claims is what a client has under way at its nodes. None of these waits for a
// node.
type claims interface {
	// Each passes an event to every claim.
	Each(event func(c *process.Attempt, now protocol.Time))
	// EachOperation passes an event to every operation on a record.
	EachOperation(event func(in *lease.RegisterOp, now protocol.Time))
	// Signal has the watches ask again.
	Signal()
	// Push passes on what a node has said to a claim or a watch.
	Push(node int, m *protocol.Push)
	// Repair has a step of a repair taken.
	Repair(step *repair.RepairStep)
	// Batch makes one command of many of a node.
	Batch() transport.Batch
	// Alone reports whether no claim waits for a push.
	Alone() bool
}

// NewPeers makes those of a list of clients, without connections.
func NewPeers(clients []redis.UniversalClient, set setup.Settings) *Peers {
	ps := &Peers{
		Set: set, Clock: wake.NewClock(), Channel: script.NewChannel(set.Prefix, set.Label),
		connection: (*Node).connection, built: make(chan struct{}), Over: make(chan struct{}),
	}
	ps.Observer.f, ps.Reach.ps, ps.Seeds.base = set.Observe, ps, nodeset.Seed
	ps.Clients = setup.NewClients(clients, &ps.Set)
	ps.Members = newMembers(ps, ps.Clients.List())
	ps.Driver.init(ps)
	ps.Life, ps.End = context.WithCancel(context.Background())
	return ps
}

// Begin begins the nodes of the list. It fails for one that cannot be.
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

// Count is how many nodes have a vote, of both sets while two count.
func (ps *Peers) Count() int { return bits.OnesCount32(ps.Driver.Sets().All()) }

func (ps *Peers) Now() protocol.Time { return ps.Clock.Now() }

func NewID() protocol.ID {
	var id protocol.ID
	_, _ = rand.Read(id[:]) // documented never to fail
	return id
}

func (ps *Peers) IsClosed() bool {
	select {
	case <-ps.Over:
		return true
	default:
		return false
	}
}

// tasks are the goroutines of a client that Close waits for: the waker,
// recordings, steps of repairs, and connections that begin or end. Each ends by
// itself when peers.over is closed and peers.life ends. It is safe for
// concurrent use; mu guards the beginning of a task.
// Invariant: no task begins after end has returned.
type tasks struct {
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// Start runs f in a goroutine, and reports false if end has been called.
func (t *tasks) Start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.running.Go(f)
	}
	return !t.ended
}

func (t *tasks) End() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
}

func (t *tasks) Wait() { t.running.Wait() }
