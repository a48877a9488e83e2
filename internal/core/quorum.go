package core

// This file owns what all claims of a process share, from its beginning to its
// end.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
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
	set     setup.Settings
	nodes   nodes  // of its set, by number
	seeds   nodes  // of its list, from nodeset.Seed on
	channel string // pushes to this client, on every node
	clock   *wake.Clock
	waker   wake.Waker
	built   chan struct{} // closed when seeds is complete: see awaitPlace
	closing chan struct{}
	once    sync.Once

	ticks, deadlines *wake.Scheduler[attempt]

	attempts   attempts
	spares     spares
	recovering recovering
	intake     intake
	waiting    atomic.Int64 // how many claims wait for their turn
	reach      reach
	records    records
	watches    watches
	tasks      tasks
	repairs    repairer
	observer   observer
	telling    atomic.Int32 // Ended callbacks under way, whose leaves are not sent yet
	driver     driver
	members    *members
	life       context.Context // of what goes on beside callers; it ends when the Quorum closes
	end        context.CancelFunc
	clients    *setup.Clients
	buckets    *buckets // nil: there are none, see bucket.go
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
	if slices.ContainsFunc(clients, isCluster) {
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
	q := &Quorum{
		set: set, clock: wake.NewClock(),
		built: make(chan struct{}), closing: make(chan struct{}),
	}
	if set.Connect == nil { // nodes of this process sleep with it
		q.waker = wake.NewWaker()
	}
	q.channel = script.NewChannel(set.Prefix, set.Label)
	q.attempts.init()
	q.observer.f = set.Observe
	q.records.calls = map[*registerCall]struct{}{}
	q.watches.all = map[protocol.ID]*Watch{}
	q.driver.init(q)
	q.repairs.q, q.reach.q = q, q
	q.ticks = wake.NewScheduler(wake.Ticks, q.now, q.tick) // which never blocks: what cannot be written at once is the link's to write
	// A goroutine for each deadline that has passed.
	q.deadlines = wake.NewScheduler(wake.Deadlines, q.now, func(due []wake.Alarm[attempt]) {
		for _, d := range due {
			go d.Sleeper().tick(ordinary)
		}
	})
	q.clients, q.seeds.base = setup.NewClients(clients, &q.set), nodeset.Seed
	q.members = newMembers(q, q.clients.List())
	q.life, q.end = context.WithCancel(context.Background())
	// Close ends the nodes that were made before the one that cannot be.
	for i, c := range clients {
		if err := q.seeds.connect(q, nodeset.Seed+i, q.clients.List()[i], c, false); err != nil {
			q.Close(context.Background())
			return nil, err
		}
	}
	// From here on nodes have events. Tick sets the timer.
	close(q.built)
	q.driver.tick()
	q.tasks.start(q.wakeUps)
	q.reach.begin()
	if n := len(clients); n%2 == 0 && set.First() {
		set.Logger.Info("quorate: an even number of nodes: the last adds no tolerance", "nodes", n, "may_fail", (n-1)/2)
	}
	return q, nil
}

// Size returns N: the nodes that have a vote, of both sets while two count.
func (q *Quorum) Size() int {
	if q.buckets != nil {
		return len(q.clients.List())
	}
	return bits.OnesCount32(q.driver.sets().All())
}

func (q *Quorum) now() protocol.Time { return q.clock.Now() }

func newID() protocol.ID {
	var id protocol.ID
	_, _ = rand.Read(id[:]) // documented never to fail
	return id
}

func (q *Quorum) isClosed() bool {
	select {
	case <-q.closing:
		return true
	default:
		return false
	}
}

// Close ends things in an order that matters: first what starts something new
// (watches, repairs, tasks), then the claims, whose leaves are queued, then the
// schedulers, then the connections, which send the leaves. It waits for a node
// for as long as that acknowledges leaves, see WhileAcknowledged. A second
// call fails with ErrClosed.
func (q *Quorum) Close(ctx context.Context) error {
	if q.buckets != nil {
		q.once.Do(func() { close(q.closing) })
		return q.buckets.close(ctx)
	}
	err := error(&fault.Failure{Err: fault.ErrClosed})
	q.once.Do(func() {
		q.tasks.end()
		close(q.closing)
		q.end()
		q.watches.close()
		// wakeUps sleeps in a read of the waker, and only this ends it.
		q.waker.Close()
		// The turns are given up, so that another client may go on before their
		// keys expire.
		q.driver.carryOut(q.driver.client.Close(q.now()))
		q.tasks.running.Wait() // they end with closing or life
		for _, a := range q.attempts.all() {
			a.close()
		}
		// No lock of an attempt is held: a batch under way may need it.
		q.ticks.Close()
		q.deadlines.Close()
		q.driver.timer.Stop()
		q.reach.stop()
		// An Ended callback may be under way. Its leaves are sent after it, so
		// wait for it, with a bound.
		for end := time.Now().Add(q.set.NodeTimeout); q.telling.Load() > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(ctx, q.set.TTL)
		defer cancel()
		err = errors.Join(q.nodes.close(ctx, q.driver.furthest(&q.set)), q.seeds.close(ctx, q.set.NodeTimeout))
		q.clients.Close()
	})
	return err
}

// Closing is closed when Close begins.
func (q *Quorum) Closing() <-chan struct{} { return q.closing }

// tasks are the goroutines of a Quorum that Close waits for: the waker,
// recordings, steps of repairs, and connections that begin or end. Each ends by
// itself when Quorum.closing is closed and Quorum.life ends. It is safe for
// concurrent use; mu guards the beginning of a task.
// Invariant: no task begins after end has returned.
type tasks struct {
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// start runs f in a goroutine, and reports false if end has been called.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.running.Go(f)
	}
	return !t.ended
}

func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
}

// wakeUps looks at the clock whenever the machine wakes up, and has the
// schedulers look at it: the timer that each of them sleeps by stood still too.
// It is a goroutine of the Quorum.
func (q *Quorum) wakeUps() {
	for was, before := q.clock.Slept(); q.waker.Wait(); {
		q.woken()
		woke, all := q.clock.Slept()
		if woke != was {
			q.driver.carryOut(q.driver.client.Slept(q.now(), woke))
			q.set.Logger.Warn("quorate: this machine was suspended; holds whose lease ended meanwhile are lost", "for", all-before)
		}
		was, before = woke, all
	}
}

func (q *Quorum) woken() {
	q.clock.CountSleep()
	q.ticks.Look()
	q.deadlines.Look()
}
