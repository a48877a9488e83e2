package core

// This file owns what follows from the set for the nodes: which of them this
// client connects to and leaves, what claims count on, and what the beginning
// of a connection does about the set.
// Invariant: a node gets no request of a claim before its record has been
// judged.

import (
	"fmt"
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
	"github.com/quorate/quorate/internal/transport"
)

// meet finds out what the server counts as that a connection has just reached,
// of which this is the run. It runs in hello, on the goroutine that makes the
// connection. If done, the node is not marked, and gets no request.
func (n *node) meet(run string) (cmds []transport.Command, done bool, err error) {
	q := n.q
	p := &n.probed
	has, ok := nodeset.ParseNodeSet(p.set)
	if layout := nodeset.LayoutOf(p.set); !ok && layout > 0 && layout != nodeset.Layout {
		return nil, true, fmt.Errorf("its set was recorded by another version of this library, with version %d of the keys, and this program has version %d: "+
			"run the same version in all clients", layout, nodeset.Layout)
	}
	if !ok {
		return nil, true, fmt.Errorf("its record of the set of nodes makes no sense; the key is %q", script.SetKey(q.set.Prefix))
	}
	// This connection judges the node, as the timer would have it do.
	if n.later != nil {
		n.later.Stop()
	}
	var v nodeset.SetVerdict
	left := false
	for _, s := range q.members.change(n.index, func(m *nodeset.Membership) {
		if left = !n.serves(m); !left {
			v = m.Met(n.index, has)
		}
	}) {
		cmds = append(cmds, n.step(s, run))
	}
	if left {
		return nil, true, fault.ErrRejudged
	}
	n.logVerdict(v)
	switch v.Fault {
	case nodeset.SetFits:
		n.pause = 0
		// A member has a marker, or makes one in its handshake.
		if p.home == q.members.home() && has.Stamp() == p.home.Stamp() && p.marker == "" && len(cmds) == 0 {
			cmds = append(cmds, n.step(nodeset.RecordStep{Node: n.index, Kind: nodeset.SetCommit, Identity: has.Identity, Config: has.Config}, run))
		}
		return cmds, false, nil
	// No error: recordings and exchanges need a connection to this node, which
	// itself refuses the requests of claims (rule 1).
	case nodeset.SetUnknown, nodeset.SetPending, nodeset.SetLost, nodeset.SetBetween, nodeset.SetAhead, nodeset.SetWrong:
		n.judgeAgain()
		return cmds, true, nil
	case nodeset.SetRetired:
		if n.seed() {
			return cmds, true, nil // it is not needed, and its connection ends
		}
	}
	return nil, true, q.members.verdictError(v)
}

// askServes asks a node whether it still serves the configuration that requests
// name. What it shows instead is found out by the next connection.
// Invariant: a client that is idle asks too.
func (n *node) askServes() {
	s := n.q.members
	n.Send(&flow.Request{Command: resp.AppendCommand(nil, script.ReadShort(s.markerKey())...), Then: func(v []resp.Value, err error) {
		if err == nil && flow.Text(v, 0) == "" {
			s.change(n.index, func(m *nodeset.Membership) { m.Refused(n.index) })
		}
	}})
}

// step is a command by which a node takes a step of its set's register.
func (n *node) step(s nodeset.RecordStep, run string) *flow.Request {
	q := n.q
	c := &flow.Request{Command: q.members.setStep(nil, s, run)}
	switch {
	case s.Kind == nodeset.SetLife:
		return n.keeps(c.Command, func(m *nodeset.Membership, has nodeset.NodeSet) { m.Kept(n.index, has) })
	case s.Kind != nodeset.SetRestore:
	case s.Config.Members[s.Config.Member(s.Identity)].Role == nodeset.Enters:
		q.set.Logger.Info("quorate: a node enters the set; it votes after the guard time", "node", n.addr)
	default:
		q.set.Logger.Info("quorate: a node lost its data and is given back its place in the set; it votes after the guard time", "node", n.addr)
	}
	return c
}

// judgeAgain has a node without a vote be judged again after a pause. What is
// under way is over in a few round trips, so the pause is short at first.
// Invariant: one pause at a time, whatever ends the connection meanwhile.
func (n *node) judgeAgain() {
	q := n.q
	longest := 5 * q.set.NodeTimeout
	if n.pause = min(2*n.pause, longest); n.pause == 0 {
		n.pause = q.set.NodeTimeout / 4
	}
	n.later = time.AfterFunc(n.pause, func() {
		q.members.change(-1, func(m *nodeset.Membership) { m.Again(n.index) })
	})
}

// logVerdict logs what is new about a node.
func (n *node) logVerdict(v nodeset.SetVerdict) {
	q := n.q
	s := q.members
	switch {
	// The node gets its place back once the members have answered.
	case v.Fault == nodeset.SetLost && v.Asks,
		// Each client that follows its set meets that for a moment. The second
		// verdict is logged.
		v.Fault == nodeset.SetAhead && n.pause == 0,
		// A node that enters is blank, and gets its place in a moment.
		v.Enters(),
		// What is no member is not used, which the log says elsewhere.
		v.Fault == nodeset.SetRetired:
		return
	}
	s.mu.Lock()
	was := s.logged[n.index]
	s.logged[n.index] = v.Fault
	s.mu.Unlock()
	switch v.Fault {
	case was, nodeset.SetFits, nodeset.SetUnknown, nodeset.SetPending:
		return
	}
	q.set.Logger.Warn("quorate: a node has no vote", "node", n.addr, "error", s.verdictError(v))
}

// follow has all that is under way count on the configuration that counts now.
// If another goroutine does so already, that one goes on with it.
// Invariant: one goroutine at a time, without a lock.
func (s *members) follow() {
	for s.followed() {
	}
}

// followed reports whether there was something to do.
func (s *members) followed() bool {
	if s.config.Load() == nil {
		return false
	}
	s.mu.Lock()
	c := s.known.Config()
	// Set before the work, not after it: what another goroutine learns
	// meanwhile is another configuration, which follow's loop finds.
	if s.following || c == nil || c == s.counted {
		s.mu.Unlock()
		return false
	}
	was := s.counted
	s.following, s.counted = true, c
	g := s.known.Group()
	s.mu.Unlock()
	if was == nil {
		s.noteList(c)
	} else {
		s.q.set.Logger.Info("quorate: the set of nodes has changed", "stage", c.Stage.String(), "epoch", c.Stamp.Epoch(), "from", was.Addrs(), "to", c.Addrs())
		s.q.observer.call(setup.Event{Kind: setup.EventSetChanged})
	}
	// Each number has a node before a claim hears of it. Its connection begins
	// when claims count on it, see keep.
	s.q.nodes.grow(s.q, g.Nodes)
	s.q.regroup(g)
	s.mu.Lock()
	s.following = false
	s.mu.Unlock()
	return true
}

// noteList logs which addresses of the list are no member's. They are not used.
func (s *members) noteList(c *nodeset.Configuration) {
	for _, addr := range s.list() {
		if c.Place(addr) < 0 {
			s.q.set.Logger.Info("quorate: a node of the list is no member of the set, and has no vote", "node", addr, "set", c.Addrs())
		}
	}
}

// regroup has all that is under way count on other nodes.
// Invariant: an attempt is in q.attempts, and an operation in q.records, before
// it reads the Client's group. The Client gets the new group before they are
// listed here. So each counts on the new group, by its start or by this call.
func (q *Quorum) regroup(g protocol.Group) {
	q.driver.carryOut(q.driver.client.Regroup(q.now(), g))
	for _, a := range q.attempts.all() {
		a.event(func(c *process.Attempt, now protocol.Time) { c.Regroup(now, g) })
	}
	q.records.event(func(in *lease.RegisterOp, now protocol.Time) { in.Regroup(now, g) })
	q.watches.signal()
}

// keep has a node be connected to while it is wanted, at the address that the
// set records, and ends it otherwise.
// Invariant: it looks again after what it has done. Two events may have their
// actions carried out in either order.
func (s *members) keep(i int) {
	q := s.q
	wanted, addr := s.wants(i)
	n := q.node(i)
	live := n != nil && !n.dropped.Load()
	switch {
	case live && (!wanted || n.addr != addr):
		n.drop()
		s.keep(i)
		return
	case live == wanted:
		return
	}
	// A task: connect waits until the node that had the index has ended, for a
	// node timeout, and the caller may be a reader.
	q.tasks.start(func() {
		if !s.counts(i) {
			return
		}
		c, own, err := q.clients.At(addr)
		if err != nil {
			q.set.Logger.Warn("quorate: a member of the set cannot be connected to", "node", addr, "error", err)
			return
		}
		if err = q.pool(i).connect(q, i, addr, c, own); err == nil {
			s.keep(i)
		} else if own {
			_ = c.Close() // Close has begun, or another call has connected it
		}
	})
}

// counts waits until claims count on a number, and requests name the
// configuration that has it. The events of the node are for the Client, which
// must know the number by then, and its handshake reads the marker of that
// configuration. It returns false if the number is none any more, or the Quorum
// closes.
func (s *members) counts(i int) bool {
	for i < nodeset.Seed {
		c := s.config.Load()
		if c == nil || c.Numbered(i) == nil {
			return false // it is connected to when a configuration with it begins to count
		}
		if s.q.driver.client.Group().Nodes > i && s.home() == script.HomeOf(c.Stamp) {
			return true
		}
		select {
		case <-time.After(time.Millisecond):
		case <-s.q.closing:
			return false
		}
	}
	return true
}

// wants reports whether a node is to be connected to, and where. Both under one
// lock: the address is that of the member that is wanted.
func (s *members) wants(i int) (is bool, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Wants(i), s.known.Addr(i)
}
