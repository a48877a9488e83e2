package peers

// Events of a node's connection: handshake, up, down and pushes. The link calls
// hello, up, down and push on its own goroutines, which must not wait for the
// node.

import (
	"errors"
	"slices"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
)

// connection returns the transport's configuration for a node, with the
// functions that its link calls.
func (n *Node) connection() transport.Config {
	ps := n.ps
	channel := ps.Channel
	if n.Seed() {
		channel = ""
	}
	return transport.Config{
		Slot:        n.Slot,
		NodeTimeout: ps.Set.NodeTimeout,
		Unlisted:    !slices.Contains(ps.Clients.List(), n.Addr),
		Channel:     channel,
		Batch:       ps.Claims.Batch(),
		Room:        n.Room,
		Alone:       ps.Claims.Alone,
		// n.Link is set only after these functions may first run, so awaitPlace
		// waits for it.
		Probe:       func() []transport.Command { n.awaitPlace(); return n.handshake.probe() },
		Hello:       n.handshake.hello,
		Votes:       n.handshake.votes.Load,
		HelloFailed: n.handshake.leaving,
		Up:          func() { n.up(); n.first.Do(func() { close(n.Attempted) }) },
		Down:        func(err error) { n.awaitPlace(); n.down(err); n.first.Do(func() { close(n.Attempted) }) },
		Push:        n.push,
		Subscribed:  n.subscribed,
		PushDown:    n.onSubscribeDown,
	}
}

// awaitPlace makes the first event of a connection wait until the node is in
// the list, and until the list contains all nodes of New. Close, which waits
// for the link, ends the wait.
// Invariant: what all nodes of the list must judge is not judged by a part of
// them.
func (n *Node) awaitPlace() {
	<-n.placed
	select {
	case <-n.ps.built:
	case <-n.ps.Over:
	}
}

// up runs when a connection to a node is ready. If the node has a vote, every claim
// asks it again, because it may have lost claims or given votes in the meantime.
// A node gets a vote with another connection only: see nodeset.Membership.Again.
func (n *Node) up() {
	ps := n.ps
	ps.Set.Logger.Debug("quorate: node is up", "node", n.Addr)
	ps.Members.Change(-1, func(m *nodeset.Membership) { m.Up(n.Index) })
	if n.Seed() {
		ps.Members.wantSoon()
		return
	}
	n.handshake.warnOfEviction()
	ps.Observer.Call(setup.Event{Kind: setup.EventNodeUp, Node: n.Addr})
	if n.handshake.votes.Load() {
		n.handshake.noteRecovering()
		ps.Driver.CarryOut(ps.Driver.Client.Up(ps.Now(), n.Index))
	}
	n.Room()
}

// subscribed runs when the node's pushes arrive. Without a vote it has none for
// claims; they ask it when it has one, see up.
func (n *Node) subscribed() {
	if n.handshake.votes.Load() {
		n.ps.Driver.CarryOut(n.ps.Driver.Client.Subscribed(n.ps.Now(), n.Index))
	}
}

// warnOfEviction logs once what otherwise only Check would report.
func (h *handshake) warnOfEviction() {
	n := h.n
	policy := n.Info().Eviction
	if policy != h.evicts && report.Evicts(policy) && n.ps.Set.First() {
		n.ps.Set.Logger.Warn("quorate: node may discard leases when its memory is full; set maxmemory-policy "+
			"noeviction", "node", n.Addr, "maxmemory-policy", policy)
	}
	h.evicts = policy
}

// down runs when a connection has ended. Claims learn of it at once, so no
// waiter relies on a push from that node.
func (n *Node) down(err error) {
	ps := n.ps
	ps.Members.Change(-1, func(m *nodeset.Membership) { m.Down(n.Index) })
	n.Writes.forget()
	if !n.Seed() {
		ps.Driver.CarryOut(ps.Driver.Client.Down(ps.Now(), n.Index))
	}
	if !ps.IsClosed() {
		ps.Reach.begin()
		if errors.Is(err, fault.ErrRejudged) || n.Dropped.Load() { // logVerdict says what is wrong with it
			ps.Set.Logger.Debug("quorate: connection to a node has ended", "node", n.Addr, "why", err)
		} else {
			// A node that answers and then breaks every connection goes down once a
			// second.
			n.Logger.Warn("quorate: node is down", "node", n.Addr, "error", err)
		}
		if !n.Seed() { // a seed may end after a member has begun at the same address
			ps.Observer.Call(setup.Event{Kind: setup.EventNodeDown, Node: n.Addr, Err: err})
		}
	}
}

// onSubscribeDown logs that a node's pushes do not arrive, for example because
// the ACL forbids the channel. The node still votes.
func (n *Node) onSubscribeDown(err error) {
	ps := n.ps
	if !ps.IsClosed() && fault.Permanent(err) {
		ps.Set.Logger.Warn("quorate: cannot subscribe to a node's pushes; waiters may be notified up to a third "+
			"of the TTL late", "node", n.Addr, "error", err)
	}
}

// push takes a message on this client's channel. Any program may publish there,
// so a malformed message is dropped.
func (n *Node) push(payload string) {
	ps := n.ps
	m, err := script.ParsePush(payload)
	if err != nil {
		ps.Set.Logger.Debug("quorate: ignored a malformed push; does another program publish on this prefix?",
			"node", n.Addr, "error", err)
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
