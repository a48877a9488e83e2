package core

// A Quorum without buckets, from its start to its end, and what its nodes
// report to the claims and operations.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
	"github.com/quorate/quorate/internal/wake"
)

// Quorum is one client's connections to N nodes and the claims it has on them.
// It is safe for concurrent use: New sets its fields. Each part that changes
// later has a lock of its own, which the comment of its type names.
type Quorum struct {
	claims
	waker       wake.Waker
	closeCalled atomic.Bool   // Close has been called
	closeDone   chan struct{} // closed when Close has done its work

	repairs repairer
	buckets *buckets // nil if no node is a Redis Cluster, see bucket.go
}

// buckets has the buckets of a Quorum. It is safe for concurrent use. mu is
// held while a bucket begins, and guards closed.
// Lock order: mu comes before every lock of a bucket's Quorum.
// Invariant: a bucket that has begun stays, because primitives keep a pointer
// to it.
type buckets struct {
	q       *Quorum
	clients []redis.UniversalClient
	spoken  report.RecentLines
	mu      sync.Mutex
	closed  bool
	all     [script.Buckets]atomic.Pointer[Quorum] // nil until a name in the bucket is used
}

// open makes a Quorum from clients that New has checked.
func open(clients []redis.UniversalClient, set setup.Settings) (*Quorum, error) {
	q := &Quorum{closeDone: make(chan struct{})}
	q.Peers = peers.NewPeers(clients, set)
	q.Claims, q.starts = inProgress{q}, make(startLimiter, MaxStarting)
	if set.Connect == nil { // nodes inside this process sleep when it sleeps, so need no waker
		q.waker = wake.NewWaker()
	}
	q.repairs.q = &q.claims
	// tick never blocks: if a link cannot write at once, it writes later by
	// itself.
	q.ticks = wake.NewScheduler(wake.Ticks, q.Now, q.tick)
	// Each deadline that has passed gets a goroutine, because the owner it
	// calls may block.
	q.deadlines = wake.NewScheduler(wake.Deadlines, q.Now, func(due []wake.Alarm[attempt]) {
		for _, d := range due {
			go d.Sleeper().tick(ordinary)
		}
	})
	if err := q.Peers.Begin(clients); err != nil {
		_ = q.end(context.Background()) // end the nodes that were made before the one that failed
		return nil, err
	}
	q.Tasks.Start(q.wakeUps)
	if set.Development && set.First() {
		set.Logger.Warn("quorate: development mode: leases are short and the guard time is safe for one node "+
			"only; remove ForDevelopment() in production",
			"ttl", set.TTL, "guard", set.Guard)
	}
	if n := len(clients); n%2 == 0 && set.First() {
		set.Logger.Info("quorate: even number of nodes: the last one adds no fault tolerance; add or remove one",
			"nodes", n, "may_fail", (n-1)/2)
	}
	return q, nil
}

// inProgress is what a Quorum has in progress, as package peers sees it: its
// methods are those that a Peers calls, see there. Primitives do not see them.
type inProgress struct{ q *Quorum }

func (p inProgress) Each(event func(c *process.Attempt, now protocol.Time)) {
	for _, a := range p.q.attempts.list() {
		a.event(event)
	}
}

func (p inProgress) EachOperation(event func(in *lease.RegisterOp, now protocol.Time)) {
	for _, i := range p.q.records.list() {
		i.event(event)
	}
}

// Signal makes all watches read soon, because a broken connection may have lost
// pushes.
func (p inProgress) Signal() {
	for _, w := range p.q.watches.list() {
		w.look()
	}
}

// Push passes a push, which package peers has judged to count, to its claim or
// watch. Either may have ended. It runs on the goroutine that reads the node,
// so it must not block.
func (p inProgress) Push(node int, m *protocol.Push) {
	if m.Changed {
		if w := p.q.watches.find(m.ID); w != nil {
			w.push(node, m.Ticket)
		}
		return
	}
	if a := p.q.attempts.find(m.ID); a != nil {
		a.event(func(c *process.Attempt, now protocol.Time) { c.Push(now, node, *m) })
	}
}

func (p inProgress) Repair(task *repair.Task) { p.q.repairs.start(task) }

func (p inProgress) Batch() transport.Batch {
	return &batch{q: &p.q.claims, values: make([]resp.Value, script.BatchHead+transport.MaxBatch)}
}

func (p inProgress) Alone() bool { return p.q.waiting.Load() == 0 }

// end ends everything in an order that matters: first whatever starts something
// new (watches, repairs, tasks), then the claims, whose leaves are queued, then
// the schedulers, then the connections, which send the leaves. It waits for a
// node as long as the node keeps acknowledging leaves, see WhileAcknowledged.
func (q *Quorum) end(ctx context.Context) error {
	q.Tasks.End()
	close(q.Over)
	q.End()
	for _, w := range q.watches.list() {
		w.end()
	}
	// wakeUps blocks in a read of the waker, which only this call ends.
	q.waker.Close()
	// Give up the turns of repairs, so that another client can go on before
	// their keys expire.
	q.Driver.CarryOut(q.Driver.Client.Close(q.Now()))
	q.Tasks.Wait() // the tasks end with Over or Life
	q.pauses.end()
	for _, a := range q.attempts.list() {
		a.mu.Lock()
		now := a.q.Now()
		a.claim.Leave(now)
		a.stepUnlock(now, closing)
	}
	// No lock of an attempt is held here, because a batch in progress may need
	// it.
	q.ticks.Close()
	q.deadlines.Close()
	q.Driver.Stop()
	q.Reach.Stop()
	// An Ended callback may still be running, and its leaves are sent after it.
	// So may a call of the logger. Wait for them, but not without limit.
	for end := time.Now().Add(q.Set.NodeTimeout); q.callbacks.running.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, q.Set.TTL)
	defer cancel()
	return errors.Join(
		q.Nodes.Close(ctx, q.Driver.LongestTimeout(&q.Set)), q.Seeds.Close(ctx, q.Set.NodeTimeout),
		q.pauses.refusals())
}

// wakeUps runs on a goroutine of the Quorum. Whenever the machine wakes up,
// wakeUps updates the clock and pokes the schedulers, whose timers stood still
// during the suspension.
func (q *Quorum) wakeUps() {
	for was, before := q.Clock.Slept(); q.waker.Wait(); {
		q.woken()
		woke, all := q.Clock.Slept()
		if woke != was {
			q.Driver.CarryOut(q.Driver.Client.Slept(q.Now(), woke))
			q.Set.Logger.Warn("quorate: this machine was suspended; holds whose lease expired in the meantime are "+
				"lost", "for", all-before)
		}
		was, before = woke, all
	}
}

// woken adds the time of a suspension to the clock, and has the schedulers check
// the clock again.
func (q *claims) woken() {
	q.Clock.CountSleep()
	q.ticks.Poke()
	q.deadlines.Poke()
}
