package peers

// The runtime of process.Client, which decides which replies count, whether
// clocks have moved apart, and which nodes are repaired. This file gives it the
// time and the nodes' answers, and carries out its actions.
// Invariant: the Client's actions are carried out without the Client's lock
// held.

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// init creates the Client. Its seed is random, so that the clients of a fleet
// do not try to repair a node at the same moments.
func (d *driver) init(ps *Peers) {
	d.ps = ps
	d.Client = process.NewClient(process.ClientConfig{
		TTL: d.ps.Set.TTL, NodeTimeout: d.ps.Set.NodeTimeout, Guard: d.ps.Set.Guard,
		Seed: rand.Uint64(),
	})
	d.timer.Start(d.tick)
}

// Stop ends the timer permanently.
func (d *driver) Stop() { d.timer.Stop() }

// tick runs on the timer's goroutine.
func (d *driver) tick() {
	if !d.ps.IsClosed() {
		d.CarryOut(d.Client.Tick(d.ps.Now()))
	}
}

// CarryOut performs the Client's actions. The caller must not hold the lock of
// an attempt or a registerCall. Two goroutines may carry out their actions in
// any order, because an action may always be late.
func (d *driver) CarryOut(do []process.Action) {
	for i := range do {
		d.act(&do[i])
	}
	for i := range do { // last: the logger may block
		d.report(&do[i])
	}
}

// act carries out one action. It must not block for long, because it may run on
// the reader of a node. Anything that waits for nodes is a command with a
// reply, or a task.
func (d *driver) act(a *process.Action) {
	switch a.Kind {
	case process.ActWake:
		d.timer.Set(d.ps.Now(), a.At)
	case process.ActAsk:
		// Pushes from the time without a connection are lost, and the node may
		// have lost the claims.
		d.ps.Claims.Each(func(c *process.Attempt, now protocol.Time) { c.Up(now, a.Node) })
		d.ps.Claims.EachOperation(func(in *lease.RegisterOp, now protocol.Time) { in.Up(now, a.Node) })
		d.ps.Claims.Signal()
	case process.ActGone:
		// A waiter counts the node as dead until it answers again (rule 4), and
		// settles at q other nodes if necessary:
		// internal/sim/testdata/down.txt.
		if !d.ps.IsClosed() {
			d.ps.Claims.Each(func(c *process.Attempt, now protocol.Time) { c.Down(now, a.Node) })
		}
	case process.ActShortenLeases:
		d.ps.Claims.Each(func(c *process.Attempt, now protocol.Time) { c.ShortenLeases(now, a.Nodes, a.By) })
		d.ps.Claims.EachOperation(func(in *lease.RegisterOp, now protocol.Time) { in.AgeAnswers(now, a.By) })
	case process.ActTime:
		for i, n := range d.ps.Nodes.All() {
			// Skip a node that is down: probe asks it for the time when the
			// next connection begins.
			if a.Nodes&(1<<i) != 0 && n.Err() == nil {
				n.Send(n.askTime())
				n.askServes()
			}
		}
	case process.ActMark:
		d.ps.Nodes.At(a.Node).beginIncarnation(a)
	case process.ActReconnect:
		d.ps.Nodes.At(a.Node).Link.Reconnect(fault.ErrOtherIncarnation)
	case process.ActRepair:
		d.ps.Claims.Repair(a.Task)
	}
}

// report passes what the Client has found out to the log and the observer.
// Invariant: it runs after act has carried out all actions. A logger may block,
// so everything that safety requires must already be done.
func (d *driver) report(a *process.Action) {
	switch a.Kind {
	case process.ActJumped:
		// Store it first: a logger that blocks must not hide it from Check.
		n := d.ps.Nodes.At(a.Node)
		n.Jump.Store(&Jump{a.By, time.Now()})
		d.ps.Set.Logger.Warn("quorate: node's clock has jumped; the node will not vote for one guard time", "node",
			n.Addr, "by", a.By)
		d.ps.Observer.Call(setup.Event{Kind: setup.EventClockJumped, Node: n.Addr, Took: a.By,
			Err: &fault.JumpedError{By: a.By}})
	case process.ActDoubted:
		d.ps.Set.Logger.Warn("quorate: this process's clock and a node's clock disagree, and too few other nodes "+
			"answer to show which one is wrong; the node will not vote for this client for half a guard "+
			"time", "node", d.ps.Addr(a.Node), "by", a.By)
	case process.ActStood:
		d.ps.Set.Logger.Warn("quorate: this process's clock stood still, as if the machine had been paused; holds "+
			"end that much earlier", "for", a.By)
	}
}

// askTime returns a question for a node's time. Send it at once, because the
// time from askTime to the answer bounds the node's clock.
func (n *Node) askTime() *flow.Request {
	ps := n.ps
	sent := ps.Now()
	return &flow.Request{Command: resp.AppendCommand(nil, "TIME"), Then: func(v []resp.Value, err error) {
		if clock, e := script.DecodeTime(v); err == nil && e == nil {
			ps.Driver.showTime(n.Index, nodeset.Reading{Sent: sent, Received: ps.Now(),
				Micros: clock.UnixMicro()})
		}
	}}
}

// showTime processes a node's time. It is evidence about clocks and nothing
// else, so the Client's verdict on the reading itself is ignored.
func (d *driver) showTime(node int, r nodeset.Reading) {
	_, do := d.Client.Time(node, r)
	d.CarryOut(do)
}

// Doubted returns an error if the clocks contradict a node's answer to a claim,
// otherwise nil. Called with a.mu held.
func (d *driver) Doubted(doubt lease.Doubt, a *protocol.Answer) error {
	if doubt == lease.NoDoubt {
		return nil
	}
	if ahead := d.NodesTime(d.ps.Now()).Sub(time.UnixMicro(a.Clock)); doubt == lease.DoubtOld ||
		ahead > d.ps.Skew() {
		return &fault.ClockError{Ahead: ahead}
	}
	return &fault.AheadError{Wait: a.Wait}
}

// NodesTime returns the median of the nodes' clocks. Before any clock is known
// it is near 1970.
func (ps *Peers) NodesTime() time.Time { return ps.Driver.NodesTime(ps.Now()) }

func (d *driver) NodesTime(at protocol.Time) time.Time {
	return time.UnixMicro(int64(d.Client.Clock(at)))
}

// beginIncarnation asks the node to begin another incarnation if it still has
// a.Incarnation, in which its clock jumped. So the questions of several clients
// begin one incarnation, not several. It passes a.Try back, so that the Client
// recognizes an answer to an older question.
func (n *Node) beginIncarnation(a *process.Action) {
	ps := n.ps
	jumped, try := strconv.FormatUint(uint64(a.Incarnation), 10), a.Try
	n.Send(&flow.Request{Command: script.AppendMark(nil, ps.Members.MarkerKey(), NewID(),
		n.Info().Run(), jumped), Then: func(v []resp.Value, err error) {
		inc, _, e := script.DecodeMarker(v)
		ps.Driver.CarryOut(ps.Driver.Client.Marked(ps.Now(), n.Index, try, inc, err == nil && e == nil))
	}})
}

// CheckIncarnation returns why a reply from that incarnation does not count, or
// nil if it counts. It is for answers that belong to no claim and no record,
// such as a marker. The caller holds no lock, because the resulting actions may
// be events of every claim.
func (d *driver) CheckIncarnation(node int, inc protocol.Incarnation) error {
	why, do := d.Client.Check(d.ps.Now(), node, inc)
	d.CarryOut(do)
	return Uncounted(why)
}

// Uncounted returns the error for a reply that does not count, or nil if it
// counts.
func Uncounted(why protocol.Why) error {
	switch why {
	case protocol.Counts:
		return nil
	case protocol.Parted:
		return fault.ErrParted
	}
	return fault.ErrOtherIncarnation
}

// Rounds returns how long to wait for n questions to a majority, one after
// another.
func (ps *Peers) Rounds(s *setup.Settings, n int) time.Duration {
	return time.Duration(n) * ps.Driver.Client.Fanout().QuorumTimeout(ps.Driver.Sets(), 0, s.NodeTimeout, s.TTL)
}

// Timeout returns how long to wait for an answer of this node.
func (n *Node) Timeout(s *setup.Settings) time.Duration {
	if n.Seed() {
		return max(s.NodeTimeout, min(2*n.Info().RoundTrip, s.TTL/4))
	}
	return n.fanout.NodeTimeout(n.Index, s.NodeTimeout, s.TTL)
}

// LongestTimeout returns how long to wait for the answers of all nodes.
func (d *driver) LongestTimeout(s *setup.Settings) time.Duration {
	g := d.Client.Group()
	return d.Client.Fanout().LongestTimeout(g.Asked(), s.NodeTimeout, s.TTL)
}

// Judge makes the Client judge an answer. The caller holds no lock, because the
// resulting actions may be events of every claim.
func (ps *Peers) Judge(name *process.Name, r *protocol.Request, a *protocol.Answer) protocol.Verdict {
	v, do := ps.Driver.Client.Reply(ps.Now(), name, r, a)
	ps.Driver.CarryOut(do)
	if v.Guarding {
		ps.Nodes.At(r.Node).noteRecovering(*a)
	}
	return v
}
