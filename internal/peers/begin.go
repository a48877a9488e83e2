package peers

// This file owns how a client's nodes begin.

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/wake"
)

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
