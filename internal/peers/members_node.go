package peers

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
func (n *Node) meet(run string) (cmds []transport.Command, done bool, err error) {
	ps := n.ps
	p := &n.probed
	has, ok := nodeset.ParseNodeSet(p.set)
	if layout := nodeset.LayoutOf(p.set); !ok && layout > 0 && layout != nodeset.Layout {
		return nil, true, fmt.Errorf("its set was recorded by another version of this library, with version %d of the keys, and this program has version %d: "+
			"run the same version in all clients", layout, nodeset.Layout)
	}
	if !ok {
		return nil, true, fmt.Errorf("its record of the set of nodes makes no sense; the key is %q", script.SetKey(ps.Set.Prefix))
	}
	// This connection judges the node, as the timer would have it do.
	if n.later != nil {
		n.later.Stop()
	}
	has.Run = run
	var v nodeset.SetVerdict
	left := false
	for _, s := range ps.Members.Change(n.Index, func(m *nodeset.Membership) {
		if left = !n.serves(m); !left {
			v = m.Met(n.Index, has)
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
		if p.home == ps.Members.Home() && has.Stamp() == p.home.Stamp() && p.marker == "" && len(cmds) == 0 {
			cmds = append(cmds, n.step(nodeset.RecordStep{Node: n.Index, Kind: nodeset.SetCommit, Identity: has.Identity, Config: has.Config}, run))
		}
		return cmds, false, nil
	// No error: recordings and exchanges need a connection to this node, which
	// itself refuses the requests of claims (rule 1).
	case nodeset.SetUnknown, nodeset.SetPending, nodeset.SetLost, nodeset.SetBetween, nodeset.SetAhead, nodeset.SetWrong:
		n.judgeAgain()
		return cmds, true, nil
	case nodeset.SetRetired:
		if n.Seed() {
			return cmds, true, nil // it is not needed, and its connection ends
		}
	}
	return nil, true, ps.Members.VerdictError(v)
}

// askServes asks a node whether it still serves the configuration that requests
// name. What it shows instead is found out by the next connection.
// Invariant: a client that is idle asks too.
func (n *Node) askServes() {
	s := n.ps.Members
	n.Send(&flow.Request{Command: resp.AppendCommand(nil, script.ReadShort(s.MarkerKey())...), Then: func(v []resp.Value, err error) {
		if err == nil && flow.Text(v, 0) == "" {
			s.Change(n.Index, func(m *nodeset.Membership) { m.Refused(n.Index) })
		}
	}})
}

// step is a command by which a node takes a step of its set's register.
func (n *Node) step(s nodeset.RecordStep, run string) *flow.Request {
	ps := n.ps
	c := &flow.Request{Command: ps.Members.setStep(nil, s, run)}
	switch {
	case s.Kind == nodeset.SetLife:
		return n.keeps(c.Command, func(m *nodeset.Membership, has nodeset.NodeSet) { m.Kept(n.Index, has) })
	case s.Kind != nodeset.SetRestore:
	case s.Config.Members[s.Config.Member(s.Identity)].Role == nodeset.Enters:
		ps.Set.Logger.Info("quorate: a node enters the set; it votes after the guard time", "node", n.Addr)
	default:
		ps.Set.Logger.Info("quorate: a node lost its data and is given back its place in the set; it votes after the guard time", "node", n.Addr)
	}
	return c
}

// judgeAgain has a node without a vote be judged again after a pause. What is
// under way is over in a few round trips, so the pause is short at first.
// Invariant: one pause at a time, whatever ends the connection meanwhile.
func (n *Node) judgeAgain() {
	ps := n.ps
	longest := 5 * ps.Set.NodeTimeout
	if n.pause = min(2*n.pause, longest); n.pause == 0 {
		n.pause = ps.Set.NodeTimeout / 4
	}
	n.later = time.AfterFunc(n.pause, func() {
		ps.Members.Change(-1, func(m *nodeset.Membership) { m.Again(n.Index) })
	})
}

// logVerdict logs what is new about a node.
func (n *Node) logVerdict(v nodeset.SetVerdict) {
	ps := n.ps
	s := ps.Members
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
	was := s.logged[n.Index]
	s.logged[n.Index] = v.Fault
	s.mu.Unlock()
	switch v.Fault {
	case was, nodeset.SetFits, nodeset.SetUnknown, nodeset.SetPending:
		return
	}
	ps.Set.Logger.Warn("quorate: a node has no vote", "node", n.Addr, "error", s.VerdictError(v))
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
	if s.Config.Load() == nil {
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
		s.ps.Set.Logger.Info("quorate: the set of nodes has changed", "stage", c.Stage.String(), "epoch", c.Stamp.Epoch(), "from", was.Addrs(), "to", c.Addrs())
		s.ps.Observer.Call(setup.Event{Kind: setup.EventSetChanged})
	}
	// Each number has a node before a claim hears of it. Its connection begins
	// when claims count on it, see keep.
	s.ps.Nodes.Grow(s.ps, g.Nodes)
	s.ps.regroup(g)
	s.mu.Lock()
	s.following = false
	s.mu.Unlock()
	return true
}

// noteList logs which addresses of the list are no member's. They are not used.
func (s *members) noteList(c *nodeset.Configuration) {
	for _, addr := range s.list() {
		if c.Place(addr) < 0 {
			s.ps.Set.Logger.Info("quorate: a node of the list is no member of the set, and has no vote", "node", addr, "set", c.Addrs())
		}
	}
}

// regroup has all that is under way count on other nodes.
// Invariant: a claim gets the events of Each, and an operation those of
// EachOperation, before it reads the Client's group. The Client gets the new
// group before they are listed here. So each counts on the new group, by its
// start or by this call.
func (ps *Peers) regroup(g protocol.Group) {
	ps.Driver.CarryOut(ps.Driver.Client.Regroup(ps.Now(), g))
	ps.Claims.Each(func(c *process.Attempt, now protocol.Time) { c.Regroup(now, g) })
	ps.Claims.EachOperation(func(in *lease.RegisterOp, now protocol.Time) { in.Regroup(now, g) })
	ps.Claims.Signal()
}

// keep has a node be connected to while it is wanted, at the address that the
// set records, and ends it otherwise.
// Invariant: it looks again after what it has done. Two events may have their
// actions carried out in either order.
func (s *members) keep(i int) {
	ps := s.ps
	wanted, addr := s.wants(i)
	n := ps.Node(i)
	live := n != nil && !n.Dropped.Load()
	switch {
	case live && (!wanted || n.Addr != addr):
		n.Drop()
		s.keep(i)
		return
	case live == wanted:
		return
	}
	// A task: connect waits until the node that had the index has ended, for a
	// node timeout, and the caller may be a reader.
	ps.Tasks.Start(func() {
		if !s.counts(i) {
			return
		}
		c, own, err := ps.Clients.At(addr)
		if err != nil {
			ps.Set.Logger.Warn("quorate: a member of the set cannot be connected to", "node", addr, "error", err)
			return
		}
		if err = ps.pool(i).Connect(ps, i, addr, c, own); err == nil {
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
		c := s.Config.Load()
		if c == nil || c.Numbered(i) == nil {
			return false // it is connected to when a configuration with it begins to count
		}
		if s.ps.Driver.Client.Group().Nodes > i && s.Home() == script.HomeOf(c.Stamp) {
			return true
		}
		select {
		case <-time.After(time.Millisecond):
		case <-s.ps.Over:
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
