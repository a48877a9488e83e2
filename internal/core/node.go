package core

// This file owns what this client knows of one node, and the events of its
// connection: the handshake, up, down, and pushes. The link calls hello, up,
// down and push on its own goroutines, which must not wait for the node.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
)

// node is one master as this client sees it. Each field says which goroutine
// writes it; the others are set once, or have locks of their own.
type node struct {
	flow.Connection
	q      *Quorum
	index  int
	addr   string
	client redis.UniversalClient
	own    bool          // the client was made for a node beside the list, and ends with the node
	slot   string        // of a cluster: a key of the bucket; else empty
	ready  chan struct{} // closed when the first attempt to connect has succeeded or failed
	first  sync.Once     // closes ready
	fanout *lease.Fanout // of all nodes
	probed probed        // only touched as a connection begins
	later  *time.Timer   // has the node judged again; as probed
	pause  time.Duration // before that; as probed
	evicts string        // the policy that was warned of; only touched as a connection begins
	jump   jump

	placed  chan struct{} // closed when the node is in the list; its connection waits for that
	dropped atomic.Bool   // it ends or has ended
	ended   chan struct{} // closed when it was dropped and has ended
}

func blankNode(q *Quorum, i int, addr string) *node {
	return &node{
		q: q, index: i, fanout: q.driver.client.Fanout(), addr: addr,
		ready: make(chan struct{}), placed: make(chan struct{}), ended: make(chan struct{}),
	}
}

// A seed is a node of the client's list, which only shows what it keeps.
func (n *node) seed() bool { return n.index >= nodeset.Seed }

// It returns at once: the link connects by itself until the node ends.
func newNode(q *Quorum, i int, addr string, c redis.UniversalClient) (*node, error) {
	n := blankNode(q, i, addr)
	n.client = c
	if isCluster(c) {
		n.slot = script.SetKey(q.set.Prefix)
	}
	channel := q.channel
	if n.seed() {
		channel = ""
	}
	l, err := q.set.Way(c, transport.Config{
		Slot:        n.slot,
		NodeTimeout: q.set.NodeTimeout,
		Channel:     channel,
		Batch:       &batch{q: q, values: make([]resp.Value, script.BatchHead+transport.MaxBatch)},
		Room:        n.Room,
		Alone:       func() bool { return q.waiting.Load() == 0 },
		// link is set below, while hello already asks it what the node said.
		Probe:       func() []transport.Command { n.awaitPlace(); return n.probe() },
		Hello:       n.hello,
		HelloFailed: n.leaving,
		Up:          func() { n.up(); n.first.Do(func() { close(n.ready) }) },
		Down:        func(err error) { n.awaitPlace(); n.down(err); n.first.Do(func() { close(n.ready) }) },
		Push:        n.push,
		Subscribed:  func() { q.driver.carryOut(q.driver.client.Subscribed(q.now(), n.index)) },
		PushDown:    n.onSubscribeDown,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: node %d: %w", fault.ErrInvalid, i, err)
	}
	n.Link = l
	return n, nil
}

// awaitPlace has the first event of a connection wait until the node is in the
// list, and all nodes of New are. It ends with Close, which waits for the link.
// Invariant: what is judged by all nodes of the list is not judged by some.
func (n *node) awaitPlace() {
	<-n.placed
	select {
	case <-n.q.built:
	case <-n.q.closing:
	}
}

// hello returns the first commands of a connection: the scripts that the node
// lacks, and the news of a restart. The news comes first so that no claim is
// made on a node before the node knows that its guard time begins. It is the
// second restart detector: the newest writes may be gone even though the marker
// survived. That is so with fsync=always, too.
func (n *node) hello(info transport.Info) ([]transport.Command, error) {
	q := n.q
	if err := suits(info); err != nil {
		return nil, err
	}
	p := &n.probed
	if p.cluster {
		return nil, fault.ErrClusterMode
	}
	if p.refused != nil {
		return nil, p.refused
	}
	// The order is that of the questions: can this server be a node; what does
	// it count as; has it forgotten anything.
	run := runOf(&info, p.marker)
	if run == "" {
		return nil, fault.ErrNoInfo
	}
	// Membership may want a step before anything else is said to the node, such
	// as the move to the configuration that counts. The scripts come first.
	own, done, err := n.meet(run)
	cmds := append(flow.Loads(p.missing), own...)
	if done {
		return cmds, err
	}
	q.driver.carryOut(q.driver.client.Connect(q.now(), n.index, info.RoundTrip))
	// The marker was read at the home of the probe. If the set has become known
	// since, that key counts no more, and the node is marked at the new one.
	clock := time.UnixMilli(p.clock)
	if m, ok := script.ParseMarker(p.marker); ok && m.Run == run && p.clock > 0 && !m.Born.After(clock) && p.home == q.members.home() {
		n.show(m.Inc)
		p.wait = m.Recovers(clock)
		q.driver.showTime(n.index, nodeset.Reading{Sent: p.sent, Received: q.now(), Millis: p.clock}) // after show: bounds of an earlier incarnation do not count
		return cmds, nil
	}
	return append(cmds, &flow.Request{Command: script.AppendMark(nil, q.members.markerKey(), newID(), run, ""), Then: func(v []resp.Value, err error) {
		if got, age, e := script.DecodeMarker(v); err == nil && e == nil {
			n.show(got)
			p.wait = max(0, q.guard()-age)
		}
	}}, n.askTime()), nil
}

// leaving ends the connection's life in the state machine if the connection
// fails before it is up: the link calls no Down for it.
func (n *node) leaving() {
	if rule.On(rule.Handshake) {
		n.q.members.change(-1, func(m *nodeset.Membership) { m.Down(n.index) })
	}
}

// show passes on which incarnation a node has as its connection begins. Until
// then no push of the node counts.
func (n *node) show(inc protocol.Incarnation) {
	q := n.q
	q.driver.carryOut(q.driver.client.Show(q.now(), n.index, inc))
}

// up runs when a connection to a node is ready. Every claim asks the node
// again, as it may have lost claims or given votes meanwhile.
func (n *node) up() {
	q := n.q
	q.set.Logger.Debug("quorate: node is up", "node", n.addr)
	q.members.change(-1, func(m *nodeset.Membership) { m.Up(n.index) })
	if n.seed() {
		q.members.noteBlank()
		return
	}
	n.warnOfEviction()
	q.observer.call(setup.Event{Kind: setup.EventNodeUp, Node: n.addr})
	n.begun()
	q.driver.carryOut(q.driver.client.Up(q.now(), n.index))
	n.Room()
}

// warnOfEviction logs once what otherwise only Check tells.
func (n *node) warnOfEviction() {
	policy := n.Info().Eviction
	if policy != n.evicts && report.Evicts(policy) && n.q.set.First() {
		n.q.set.Logger.Warn("quorate: a node may throw away leases; set its maxmemory-policy to noeviction", "node", n.addr, "maxmemory-policy", policy)
	}
	n.evicts = policy
}

// down runs when a connection has ended. Claims learn it at once, so no waiter
// counts on a push from that node.
func (n *node) down(err error) {
	q := n.q
	q.members.change(-1, func(m *nodeset.Membership) { m.Down(n.index) })
	if !n.seed() {
		q.driver.carryOut(q.driver.client.Down(q.now(), n.index))
	}
	if !q.isClosed() {
		q.reach.begin()
		if errors.Is(err, fault.ErrRejudged) || n.dropped.Load() { // logVerdict says what is wrong with it
			q.set.Logger.Debug("quorate: a connection to a node has ended", "node", n.addr, "why", err)
		} else {
			q.set.Logger.Warn("quorate: node is down", "node", n.addr, "error", err)
		}
		if !n.seed() { // its end may come after a member has begun at that address
			q.observer.call(setup.Event{Kind: setup.EventNodeDown, Node: n.addr, Err: err})
		}
	}
}

// gone passes on to the claims that a node's connection has ended. A waiter
// then counts the node as dead until it answers again (rule 4), and settles at
// q others if it has to. See internal/sim/testdata/down.txt.
func (n *node) gone() {
	q := n.q
	if q.isClosed() {
		return
	}
	for _, a := range q.attempts.all() {
		a.event(func(c *process.Attempt, now protocol.Time) { c.Down(now, n.index) })
	}
}

// onSubscribeDown logs that a node's pushes do not arrive, where the ACL
// forbids the channel. The node votes all the same.
func (n *node) onSubscribeDown(err error) {
	q := n.q
	if !q.isClosed() && fault.ForGood(err) {
		q.set.Logger.Warn("quorate: a node's pushes cannot be heard; waiters learn of their turn by their beats", "node", n.addr, "error", err)
	}
}

// recheck asks a node about every claim: pushes from the time without a
// connection are lost, and the claims may be lost, too.
func (n *node) recheck() {
	q := n.q
	for _, a := range q.attempts.all() {
		a.event(func(c *process.Attempt, now protocol.Time) {
			c.Up(now, n.index)
		})
	}
	q.records.event(func(in *lease.RegisterOp, now protocol.Time) { in.Up(now, n.index) })
	q.watches.signal()
}

// push takes a message on the channel of this client. Any program may publish
// there, so one that makes no sense is dropped.
func (n *node) push(payload string) {
	q := n.q
	m, err := script.ParsePush(payload)
	if err != nil {
		q.set.Logger.Debug("quorate: a push makes no sense and is ignored; does another program publish on this prefix?", "node", n.addr, "error", err)
		return
	}
	// Invariant: a push is judged before a claim gets it, as a reply is in
	// call.Reply.
	counts, do := q.driver.client.Push(q.now(), n.index, &m)
	q.driver.carryOut(do)
	switch {
	case !counts:
	case m.Changed:
		if w := q.watches.find(m.ID); w != nil {
			w.push(n.index, m.Ticket)
		}
	default:
		if a := q.attempts.find(m.ID); a != nil {
			a.event(func(c *process.Attempt, now protocol.Time) { c.Push(now, n.index, m) })
		}
	}
}

// close ends an attempt because its Quorum closes. Its leaves are queued here
// and sent by the links, which close after it.
func (a *attempt) close() {
	a.mu.Lock()
	now := a.q.now()
	a.claim.Leave(now)
	a.endUnlock(now, closing)
}

// drop ends a node for good. It does not wait for that: n.ended is closed when
// nothing of the node is left.
func (n *node) drop() {
	if n.dropped.Swap(true) {
		return
	}
	q := n.q
	// It is a task: the caller may be the link's own goroutine, which the
	// link's Close waits for.
	q.tasks.start(func() { // or Close ends it
		defer close(n.ended)
		ctx, cancel := context.WithTimeout(context.Background(), n.timeout(&q.set))
		defer cancel()
		_ = n.end(ctx) // says how much was unanswered
		n.Settle()
		q.members.change(-1, func(m *nodeset.Membership) { m.Down(n.index) })
		if !n.seed() {
			q.driver.carryOut(q.driver.client.Down(q.now(), n.index))
			n.noteRecovering(protocol.Answer{Status: protocol.OK})
			q.observer.call(setup.Event{Kind: setup.EventNodeLeft, Node: n.addr})
		}
		q.set.Logger.Debug("quorate: a node is not used any more", "node", n.addr)
	})
}
