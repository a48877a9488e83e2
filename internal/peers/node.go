package peers

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
type Node struct {
	flow.Connection
	ps     *Peers
	Index  int
	Addr   string
	client redis.UniversalClient
	own    bool                 // the client was made for a node beside the list, and ends with the node
	Slot   string               // of a cluster: a key of the bucket; else empty
	Ready  chan struct{}        // closed when the first attempt to connect has succeeded or failed
	first  sync.Once            // closes ready
	fanout *lease.Fanout        // of all nodes
	probed probed               // only touched as a connection begins
	later  *time.Timer          // has the node judged again; as probed
	pause  time.Duration        // before that; as probed
	evicts string               // the policy that was warned of; only touched as a connection begins
	Jump   atomic.Pointer[Jump] // nil: none

	placed  chan struct{} // closed when the node is in the list; its connection waits for that
	Dropped atomic.Bool   // it ends or has ended
	Ended   chan struct{} // closed when it was dropped and has ended
}

func blankNode(ps *Peers, i int, addr string) *Node {
	return &Node{
		ps: ps, Index: i, fanout: ps.Driver.Client.Fanout(), Addr: addr,
		Ready: make(chan struct{}), placed: make(chan struct{}), Ended: make(chan struct{}),
	}
}

// A seed is a node of the client's list, which only shows what it keeps.
func (n *Node) Seed() bool { return n.Index >= nodeset.Seed }

// It returns at once: the link connects by itself until the node ends.
func newNode(ps *Peers, i int, addr string, c redis.UniversalClient) (*Node, error) {
	n := blankNode(ps, i, addr)
	n.client = c
	if setup.IsCluster(c) {
		n.Slot = script.SetKey(ps.Set.Prefix)
	}
	l, err := ps.Set.Way(c, ps.connection(n))
	if err != nil {
		return nil, fmt.Errorf("%w: node %d: %w", fault.ErrInvalid, i, err)
	}
	n.Link = l
	return n, nil
}

// connection is how a node is connected to, and what its link calls.
func (n *Node) connection() transport.Config {
	ps := n.ps
	channel := ps.Channel
	if n.Seed() {
		channel = ""
	}
	return transport.Config{
		Slot:        n.Slot,
		NodeTimeout: ps.Set.NodeTimeout,
		Channel:     channel,
		Batch:       ps.Claims.Batch(),
		Room:        n.Room,
		Alone:       ps.Claims.Alone,
		// The link is set later, while hello already asks it what the node said.
		Probe:       func() []transport.Command { n.awaitPlace(); return n.probe() },
		Hello:       n.hello,
		HelloFailed: n.leaving,
		Up:          func() { n.up(); n.first.Do(func() { close(n.Ready) }) },
		Down:        func(err error) { n.awaitPlace(); n.down(err); n.first.Do(func() { close(n.Ready) }) },
		Push:        n.push,
		Subscribed:  func() { ps.Driver.CarryOut(ps.Driver.Client.Subscribed(ps.Now(), n.Index)) },
		PushDown:    n.onSubscribeDown,
	}
}

// awaitPlace has the first event of a connection wait until the node is in the
// list, and all nodes of New are. It ends with Close, which waits for the link.
// Invariant: what is judged by all nodes of the list is not judged by some.
func (n *Node) awaitPlace() {
	<-n.placed
	select {
	case <-n.ps.built:
	case <-n.ps.Over:
	}
}

// hello returns the first commands of a connection: the scripts that the node
// lacks, and the news of a restart. The news comes first so that no claim is
// made on a node before the node knows that its guard time begins. It is the
// second restart detector: the newest writes may be gone even though the marker
// survived. That is so with fsync=always, too.
func (n *Node) hello(info transport.Info) ([]transport.Command, error) {
	ps := n.ps
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
	ps.Driver.CarryOut(ps.Driver.Client.Connect(ps.Now(), n.Index, info.RoundTrip))
	// The marker was read at the home of the probe. If the set has become known
	// since, that key counts no more, and the node is marked at the new one.
	clock := time.UnixMilli(p.clock)
	if m, ok := script.ParseMarker(p.marker); ok && m.Run == run && p.clock > 0 && !m.Born.After(clock) && p.home == ps.Members.Home() {
		n.show(m.Inc)
		p.wait = m.Recovers(clock)
		ps.Driver.showTime(n.Index, nodeset.Reading{Sent: p.sent, Received: ps.Now(), Millis: p.clock}) // after show: bounds of an earlier incarnation do not count
		return cmds, nil
	}
	return append(cmds, &flow.Request{Command: script.AppendMark(nil, ps.Members.MarkerKey(), NewID(), run, ""), Then: func(v []resp.Value, err error) {
		if got, age, e := script.DecodeMarker(v); err == nil && e == nil {
			n.show(got)
			p.wait = max(0, ps.Guard()-age)
		}
	}}, n.askTime()), nil
}

// leaving ends the connection's life in the state machine if the connection
// fails before it is up: the link calls no Down for it.
func (n *Node) leaving() {
	if rule.On(rule.Handshake) {
		n.ps.Members.Change(-1, func(m *nodeset.Membership) { m.Down(n.Index) })
	}
}

// show passes on which incarnation a node has as its connection begins. Until
// then no push of the node counts.
func (n *Node) show(inc protocol.Incarnation) {
	ps := n.ps
	ps.Driver.CarryOut(ps.Driver.Client.Show(ps.Now(), n.Index, inc))
}

// up runs when a connection to a node is ready. Every claim asks the node
// again, as it may have lost claims or given votes meanwhile.
func (n *Node) up() {
	ps := n.ps
	ps.Set.Logger.Debug("quorate: node is up", "node", n.Addr)
	ps.Members.Change(-1, func(m *nodeset.Membership) { m.Up(n.Index) })
	if n.Seed() {
		ps.Members.noteBlank()
		return
	}
	n.warnOfEviction()
	ps.Observer.Call(setup.Event{Kind: setup.EventNodeUp, Node: n.Addr})
	n.begun()
	ps.Driver.CarryOut(ps.Driver.Client.Up(ps.Now(), n.Index))
	n.Room()
}

// warnOfEviction logs once what otherwise only Check tells.
func (n *Node) warnOfEviction() {
	policy := n.Info().Eviction
	if policy != n.evicts && report.Evicts(policy) && n.ps.Set.First() {
		n.ps.Set.Logger.Warn("quorate: a node may throw away leases; set its maxmemory-policy to noeviction", "node", n.Addr, "maxmemory-policy", policy)
	}
	n.evicts = policy
}

// down runs when a connection has ended. Claims learn it at once, so no waiter
// counts on a push from that node.
func (n *Node) down(err error) {
	ps := n.ps
	ps.Members.Change(-1, func(m *nodeset.Membership) { m.Down(n.Index) })
	if !n.Seed() {
		ps.Driver.CarryOut(ps.Driver.Client.Down(ps.Now(), n.Index))
	}
	if !ps.IsClosed() {
		ps.Reach.begin()
		if errors.Is(err, fault.ErrRejudged) || n.Dropped.Load() { // logVerdict says what is wrong with it
			ps.Set.Logger.Debug("quorate: a connection to a node has ended", "node", n.Addr, "why", err)
		} else {
			ps.Set.Logger.Warn("quorate: node is down", "node", n.Addr, "error", err)
		}
		if !n.Seed() { // its end may come after a member has begun at that address
			ps.Observer.Call(setup.Event{Kind: setup.EventNodeDown, Node: n.Addr, Err: err})
		}
	}
}

// gone passes on to the claims that a node's connection has ended. A waiter
// then counts the node as dead until it answers again (rule 4), and settles at
// q others if it has to. See internal/sim/testdata/down.txt.
func (n *Node) gone() {
	ps := n.ps
	if ps.IsClosed() {
		return
	}
	ps.Claims.Each(func(c *process.Attempt, now protocol.Time) { c.Down(now, n.Index) })
}

// onSubscribeDown logs that a node's pushes do not arrive, where the ACL
// forbids the channel. The node votes all the same.
func (n *Node) onSubscribeDown(err error) {
	ps := n.ps
	if !ps.IsClosed() && fault.ForGood(err) {
		ps.Set.Logger.Warn("quorate: a node's pushes cannot be heard; waiters learn of their turn by their beats", "node", n.Addr, "error", err)
	}
}

// recheck asks a node about every claim: pushes from the time without a
// connection are lost, and the claims may be lost, too.
func (n *Node) recheck() {
	ps := n.ps
	ps.Claims.Each(func(c *process.Attempt, now protocol.Time) { c.Up(now, n.Index) })
	ps.Claims.EachOperation(func(in *lease.RegisterOp, now protocol.Time) { in.Up(now, n.Index) })
	ps.Claims.Signal()
}

// push takes a message on the channel of this client. Any program may publish
// there, so one that makes no sense is dropped.
func (n *Node) push(payload string) {
	ps := n.ps
	m, err := script.ParsePush(payload)
	if err != nil {
		ps.Set.Logger.Debug("quorate: a push makes no sense and is ignored; does another program publish on this prefix?", "node", n.Addr, "error", err)
		return
	}
	// Invariant: a push is judged before a claim gets it, as a reply is in
	// call.Reply.
	counts, do := ps.Driver.Client.Push(ps.Now(), n.Index, &m)
	ps.Driver.CarryOut(do)
	if counts {
		ps.Claims.Push(n.Index, &m)
	}
}

// Drop ends a node for good. It does not wait for that: n.ended is closed when
// nothing of the node is left.
func (n *Node) Drop() {
	if n.Dropped.Swap(true) {
		return
	}
	ps := n.ps
	// It is a task: the caller may be the link's own goroutine, which the
	// link's Close waits for.
	ps.Tasks.Start(func() { // or Close ends it
		defer close(n.Ended)
		ctx, cancel := context.WithTimeout(context.Background(), n.Timeout(&ps.Set))
		defer cancel()
		_ = n.end(ctx) // says how much was unanswered
		n.Settle()
		ps.Members.Change(-1, func(m *nodeset.Membership) { m.Down(n.Index) })
		if !n.Seed() {
			ps.Driver.CarryOut(ps.Driver.Client.Down(ps.Now(), n.Index))
			n.noteRecovering(protocol.Answer{Status: protocol.OK})
			ps.Observer.Call(setup.Event{Kind: setup.EventNodeLeft, Node: n.Addr})
		}
		ps.Set.Logger.Debug("quorate: a node is not used any more", "node", n.Addr)
	})
}
