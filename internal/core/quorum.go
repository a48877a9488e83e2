package core

// This file owns what all claims of a process share, from its beginning to its
// end.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
	"github.com/quorate/quorate/internal/wake"
)

// Quorum is one client's connections to N nodes and the claims it has on them.
// It is safe for concurrent use: New sets its fields, and each part that
// changes later has a lock of its own, named at its type. There is no lock of
// the whole Quorum, so a call of one claim waits for no call of another one.
type Quorum struct {
	*peers.Peers
	waker  wake.Waker
	closes atomic.Bool   // Close has been called
	ended  chan struct{} // closed when Close has done its work

	ticks, deadlines *wake.Scheduler[attempt]

	attempts registry[protocol.ID, *attempt]
	intake   intake
	waiting  atomic.Int64 // how many claims wait for their turn
	records  registry[*registerCall, *registerCall]
	watches  registry[protocol.ID, *Watch]
	repairs  repairer
	telling  atomic.Int32 // Ended callbacks under way, whose leaves are not sent yet
	buckets  *buckets     // nil: there are none, see bucket.go
}

// New connects to the nodes. It returns at once; nodes that cannot be reached
// are tried again until Close. An error is about the settings or the clients,
// never about a node: a process must start while a minority of its nodes is
// down.
func New(clients []redis.UniversalClient, set setup.Settings) (*Quorum, error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	if err := checkClients(clients, &set); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(clients, setup.IsCluster) {
		return newBucketed(clients, set)
	}
	return open(clients, set)
}

// checkClients refuses clients that cannot be a set of independent masters.
// Errors count the nodes from 1 on, as those of ParseNodes do.
func checkClients(clients []redis.UniversalClient, set *setup.Settings) error {
	if len(clients) == 0 {
		return fmt.Errorf("%w: no nodes; give 1, 3 or 5 independent Redis masters", fault.ErrInvalid)
	}
	// Sets of nodes are a uint32 in the whole protocol, a bit for each node.
	if len(clients) > 31 {
		return fmt.Errorf("%w: %d nodes; more than 31 make every lock slower and none safer", fault.ErrInvalid, len(clients))
	}
	if len(set.Names) > 0 && len(set.Names) != len(clients) {
		return fmt.Errorf("%w: WithNodeNames has %d names for %d nodes", fault.ErrInvalid, len(set.Names), len(clients))
	}
	at := map[string]int{}
	for i, c := range clients {
		missing := true
		switch c := c.(type) {
		case *redis.Client:
			missing = c == nil
		case *redis.ClusterClient:
			missing = c == nil
		default:
			return fmt.Errorf("%w: node %d is a %T; each node must be one master, a *redis.Client, or a cluster, a *redis.ClusterClient", fault.ErrInvalid, i+1, c)
		}
		if missing {
			return fmt.Errorf("%w: node %d is nil", fault.ErrInvalid, i+1)
		}
		// Equal addresses are only the simplest duplicate. Two addresses of one
		// server show one identity once they have recorded their set.
		name := set.NameOf(c, i)
		if name == transport.SentinelAddr {
			return fmt.Errorf("%w: node %d is the client of a Sentinel set, which does not tell of which: "+
				"name the nodes by WithNodeNames, this one \"sentinel:MASTER@HOST:PORT,HOST:PORT\", or give Connect its URL", fault.ErrInvalid, i+1)
		}
		if j, dup := at[name]; dup {
			return fmt.Errorf("%w: nodes %d and %d are the same server, %s, whose vote would count twice; give each server once", fault.ErrInvalid, j+1, i+1, name)
		}
		at[name] = i
	}
	return nil
}

// open makes a Quorum of nodes that New has checked.
func open(clients []redis.UniversalClient, set setup.Settings) (*Quorum, error) {
	q := &Quorum{Peers: peers.NewPeers(clients, set), ended: make(chan struct{})}
	q.Claims = q
	if set.Connect == nil { // nodes of this process sleep with it
		q.waker = wake.NewWaker()
	}
	q.repairs.q = q
	q.ticks = wake.NewScheduler(wake.Ticks, q.Now, q.tick) // which never blocks: what cannot be written at once is the link's to write
	// A goroutine for each deadline that has passed.
	q.deadlines = wake.NewScheduler(wake.Deadlines, q.Now, func(due []wake.Alarm[attempt]) {
		for _, d := range due {
			go d.Sleeper().tick(ordinary)
		}
	})
	if err := q.Peers.Begin(clients); err != nil {
		q.Close(context.Background()) // ends the nodes that were made before the one that cannot be
		return nil, err
	}
	q.Tasks.Start(q.wakeUps)
	if n := len(clients); n%2 == 0 && set.First() {
		set.Logger.Info("quorate: an even number of nodes: the last adds no tolerance", "nodes", n, "may_fail", (n-1)/2)
	}
	return q, nil
}

// Size returns N: the nodes that have a vote, of both sets while two count.
func (q *Quorum) Size() int {
	if q.buckets != nil {
		return len(q.Clients.List())
	}
	return q.Count()
}

// The methods from here to Alone are what the nodes pass on: see claims.

func (q *Quorum) Each(event func(c *process.Attempt, now protocol.Time)) {
	for _, a := range q.attempts.list() {
		a.event(event)
	}
}

func (q *Quorum) EachOperation(event func(in *lease.RegisterOp, now protocol.Time)) {
	for _, i := range q.records.list() {
		i.event(event)
	}
}

// Signal has all watches read soon: pushes may be lost with a connection.
func (q *Quorum) Signal() {
	for _, w := range q.watches.list() {
		w.signal(w.soon)
	}
}

func (q *Quorum) Push(node int, m *protocol.Push) {
	if m.Changed {
		if w := q.watches.find(m.ID); w != nil {
			w.push(node, m.Ticket)
		}
		return
	}
	if a := q.attempts.find(m.ID); a != nil {
		a.event(func(c *process.Attempt, now protocol.Time) { c.Push(now, node, *m) })
	}
}

func (q *Quorum) Repair(step *repair.RepairStep) { q.repairs.start(step) }

func (q *Quorum) Batch() transport.Batch {
	return &batch{q: q, values: make([]resp.Value, script.BatchHead+transport.MaxBatch)}
}

func (q *Quorum) Alone() bool { return q.waiting.Load() == 0 }

// Close ends the client, see end. A second call waits until the first has done
// so, and fails with ErrClosed. It waits for a channel: while a goroutine waits
// for a lock, the time of a testing/synctest bubble stands still.
func (q *Quorum) Close(ctx context.Context) error {
	first := q.closes.CompareAndSwap(false, true)
	switch {
	case q.buckets != nil:
		if first {
			close(q.Over)
		}
		return q.buckets.close(ctx)
	case !first:
		<-q.ended
		return &fault.Failure{Err: fault.ErrClosed}
	}
	defer close(q.ended)
	return q.end(ctx)
}

// end ends things in an order that matters: first what starts something new
// (watches, repairs, tasks), then the claims, whose leaves are queued, then the
// schedulers, then the connections, which send the leaves. It waits for a node
// for as long as that acknowledges leaves, see WhileAcknowledged.
func (q *Quorum) end(ctx context.Context) error {
	q.Tasks.End()
	close(q.Over)
	q.End()
	for _, w := range q.watches.list() {
		w.end()
	}
	// wakeUps sleeps in a read of the waker, and only this ends it.
	q.waker.Close()
	// The turns are given up, so that another client may go on before their
	// keys expire.
	q.Driver.CarryOut(q.Driver.Client.Close(q.Now()))
	q.Tasks.Wait() // they end with Over or Life
	for _, a := range q.attempts.list() {
		a.close()
	}
	// No lock of an attempt is held: a batch under way may need it.
	q.ticks.Close()
	q.deadlines.Close()
	q.Driver.Stop()
	q.Reach.Stop()
	// An Ended callback may be under way. Its leaves are sent after it, so wait
	// for it, with a bound.
	for end := time.Now().Add(q.Set.NodeTimeout); q.telling.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, q.Set.TTL)
	defer cancel()
	return errors.Join(q.Nodes.Close(ctx, q.Driver.Furthest(&q.Set)), q.Seeds.Close(ctx, q.Set.NodeTimeout))
}

// wakeUps looks at the clock whenever the machine wakes up, and has the
// schedulers look at it: the timer that each of them sleeps by stood still too.
// It is a goroutine of the Quorum.
func (q *Quorum) wakeUps() {
	for was, before := q.Clock.Slept(); q.waker.Wait(); {
		q.woken()
		woke, all := q.Clock.Slept()
		if woke != was {
			q.Driver.CarryOut(q.Driver.Client.Slept(q.Now(), woke))
			q.Set.Logger.Warn("quorate: this machine was suspended; holds whose lease ended meanwhile are lost", "for", all-before)
		}
		was, before = woke, all
	}
}

func (q *Quorum) woken() {
	q.Clock.CountSleep()
	q.ticks.Look()
	q.deadlines.Look()
}
