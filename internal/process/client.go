package process

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
)

// Each event of a Client is handled completely before the next one, in this
// order (the events are in client_events.go):
//
//	incarnation   does the reply count at all?           incarnation.go
//	clocks        if it does: have the clocks parted?    nodeclock.go
//	guard time    is its node within it?                 fanout.go
//	tickets       does it show a higher ticket?          ticketclock.go
//	repair        does its node lack something?          repair.go
//	claim         the claim's part: Attempt, RegisterOp   attempt.go, register_events.go
//
// Invariant: a reply that does not count changes nothing, except that the
// client finds out why. The time that the node shows is no evidence, since it
// may be the time of another server. The ticket that it shows moves no clock.

// Client makes the decisions of one process that do not belong to a single
// claim: which replies count, whether a clock has jumped, which nodes are
// repaired, and what the runtime must do. Its methods take the time and an
// event, and return what the runtime must do. The runtime moves bytes and
// timers, and the simulator drives the same Client.
//
// A Client is safe for concurrent use. It has its own locks:
//
//   - A reply from the incarnation that its node votes with, whose time is within the bounds
//     of the node's clock, takes only the lock of these bounds. Nearly every reply is like that.
//   - Every other event takes mu, and is handled completely under it: what one part of the
//     Client tells another part takes effect before any other event.
//   - The runtime carries out the returned actions after the call, without a lock of the Client.
//
// The part of one claim is an [Attempt], which a lock of the runtime guards.
// Lock order: the lock of an Attempt, then mu, then the locks of the bounds.
// The runtime passes an [Action] on to the claims only while it holds no lock
// of an Attempt.
type Client struct {
	ClientConfig

	fanout *lease.Fanout
	bounds []nodeBounds // what is known about each node's clock, each with its own lock

	// Read without mu, and written with mu held.
	votes  []atomic.Uint64                // per node: the incarnation that it votes with, 0: none
	parted atomic.Bool                    // some clocks disagree, so each reading may be evidence
	ahead  atomic.Int64                   // see Clock
	group  atomic.Pointer[protocol.Group] // the nodes that the client uses now

	mu           sync.Mutex
	incarnations *nodeset.Incarnations
	clocks       *nodeset.Clocks // used with mu and all bounds locked
	repair       *repair.Repair
	alarm        protocol.Time // when the runtime was asked to call Tick; Never: it was not asked
	poll         protocol.Time // when the nodes are asked for their times next
	closed       bool          // Close was called: nothing is repaired any more
	do           []Action
}

// ClientConfig configures a Client.
type ClientConfig struct {
	Nodes       int // how many nodes the list has; Regroup may add some, with Client.mu held
	TTL         time.Duration
	NodeTimeout time.Duration
	Guard       time.Duration
	Seed        uint64                                // spreads the repairs of many clients
	Skewed      func(protocol.Ticket) protocol.Ticket // for tests: changes what Clock returns; nil: no change
}

type ActionKind uint8

// The kinds of an Action. The runtime carries actions out in the order in which
// it gets them. The kinds from ActJumped on change nothing and are only
// reported.
const (
	ActWake ActionKind = iota + 1 // call Tick at At, or as soon after that as possible
	ActAsk                        // call Up(Node) of every claim and every operation on a record
	ActGone                       // call Down(Node) of every claim
	// Call ShortenLeases(Nodes, By) of every claim, and AgeAnswers(By) of every
	// operation on a record.
	ActShortenLeases
	// Ask Nodes for their time, and whether they serve the configuration;
	// report the answers to Time and Membership.Refused.
	ActTime
	// Make Node begin another incarnation if it still has Incarnation; report
	// the result to Marked.
	ActMark
	ActReconnect // end the connection to Node: the next one shows the node's incarnation
	ActRepair    // carry out Task of a repair
	ActJumped    // Node's clock has jumped by By
	ActDoubted   // either Node's clock or this process's jumped or stood still
	ActStood     // this process's clock stood still for By
)

// Action is one thing that the runtime must do for a Client. The runtime
// carries it out while it holds none of the locks of the Client. An action may
// be carried out late. Try and Incarnation identify the question, so an answer
// to an outdated question changes nothing.
type Action struct {
	Kind        ActionKind
	Node        int
	Nodes       uint32 // a bit for each
	By          time.Duration
	At          protocol.Time
	Incarnation protocol.Incarnation
	Try         uint32 // passed back with the answer
	Task        *repair.Task
}

// NewClient returns the Client of a new process. The first Tick starts it.
func NewClient(cfg ClientConfig) *Client {
	c := &Client{
		ClientConfig: cfg,
		fanout:       lease.NewFanout(cfg.Nodes),
		bounds:       make([]nodeBounds, protocol.MaxNodes),
		votes:        make([]atomic.Uint64, protocol.MaxNodes),
		alarm:        protocol.Never, poll: protocol.Never,
		incarnations: nodeset.NewIncarnations(cfg.Nodes),
		repair:       repair.NewRepair(cfg.Nodes, cfg.NodeTimeout, cfg.Guard, cfg.Seed),
	}
	all := protocol.Majority(cfg.Nodes)
	c.group.Store(&protocol.Group{Nodes: cfg.Nodes, Sets: all, Deciders: all,
		Window: protocol.WindowOf(cfg.Guard)})
	c.clocks = nodeset.NewClocks(boundsOf(c.bounds[:cfg.Nodes]), cfg.NodeTimeout, cfg.Guard)
	return c
}

func (c *Client) Fanout() *lease.Fanout { return c.fanout }

// Window returns how far tickets may be from the clocks of the nodes.
func (c *Client) Window() protocol.Window { return c.group.Load().Window }

// Group returns the nodes that the client uses now.
func (c *Client) Group() protocol.Group { return *c.group.Load() }

// Voting returns the incarnation that a node votes with, 0 if it does not vote.
func (c *Client) Voting(node int) protocol.Incarnation {
	return protocol.Incarnation(c.votes[node].Load())
}

// Attempted reports whether nobody needs to wait for the first attempt to
// repair a node: it has been made, no repair is in progress, or the client does
// not use the node yet.
func (c *Client) Attempted(node int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return node >= c.Nodes || c.repair.Attempted(node)
}

// unlock ends an event: it passes the Out of each part of the Client to the
// others until none is left, publishes votes and ahead, which are read without a
// lock, and unlocks c.mu. It returns what the runtime must do.
// Invariant: votes is written before the actions are carried out. A reply that
// is judged by the old value is treated as if it had arrived before the event.
func (c *Client) unlock(now protocol.Time) []Action {
	for len(c.incarnations.Out) > 0 || len(c.clocks.Out) > 0 || len(c.repair.Out) > 0 {
		c.nodeActions(now)
		clocks, tasks := c.clocks.Out, c.repair.Out
		c.clocks.Out, c.repair.Out = nil, nil
		for _, e := range clocks {
			c.clock(e)
		}
		for i := range tasks {
			c.act(Action{Kind: ActRepair, Task: &tasks[i]})
		}
	}
	for i := range c.Nodes {
		if inc := uint64(c.incarnations.Voting(i)); c.votes[i].Load() != inc {
			c.votes[i].Store(inc)
		}
	}
	c.judgeClocks(func(j *nodeset.Clocks) {
		if ahead, known := j.Median(); known {
			c.ahead.Store(ahead)
		}
	})
	if at := min(c.repair.Wake(), c.clocks.Wake(), c.poll); at < c.alarm && !c.closed {
		c.alarm = at
		c.act(Action{Kind: ActWake, At: at})
	}
	do := c.do
	c.do = nil
	c.mu.Unlock()
	return do
}

func (c *Client) act(a Action) { c.do = append(c.do, a) }

// nodeActions carries out what Incarnations has asked for. Called with c.mu
// held.
func (c *Client) nodeActions(now protocol.Time) {
	said := c.incarnations.Out
	c.incarnations.Out = nil
	for _, a := range said {
		switch a.Kind {
		case nodeset.NodeVotes:
			c.judgeClocks(func(j *nodeset.Clocks) { j.IncarnationBegan(a.Node) }) //mutant:RuleMet
		case nodeset.NodeMark:
			c.act(Action{Kind: ActMark, Node: a.Node, Incarnation: a.Inc, Try: a.Try})
		case nodeset.NodeReconnect:
			c.act(Action{Kind: ActReconnect, Node: a.Node})
		case nodeset.NodeAsk:
			c.act(Action{Kind: ActAsk, Node: a.Node})
		case nodeset.NodeRepair:
			c.repair.Look(now, a.Node)
		}
	}
}

// clock carries out one thing that Clocks has asked for. Called with c.mu held.
func (c *Client) clock(e nodeset.ClockEvent) {
	switch e.Kind {
	case nodeset.ClockAsk:
		c.act(Action{Kind: ActTime, Nodes: e.Nodes})
	case nodeset.ClockMark:
		c.incarnations.Distrust(e.Node) // if the mark fails, the next answer asks for it again
	case nodeset.ClockEarly:
		c.act(Action{Kind: ActShortenLeases, Nodes: e.Nodes, By: e.By})
	case nodeset.ClockReportJump:
		c.act(Action{Kind: ActJumped, Node: e.Node, By: e.By})
	case nodeset.ClockStood:
		c.act(Action{Kind: ActStood, By: e.By})
	case nodeset.ClockDoubted:
		c.act(Action{Kind: ActDoubted, Node: e.Node, By: e.By})
		if e.By < 0 { // its guard time may have started in the node's future; reconnecting restarts it
			c.act(Action{Kind: ActReconnect, Node: e.Node})
		}
	}
}
