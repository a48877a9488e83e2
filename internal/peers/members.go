package peers

// Events of members: each goes to nodeset.Membership, and its outcome reaches
// claims, requests and connections in a fixed order. quorum.go has the texts of
// verdicts, members_node.go what a new connection does with them, and
// members_wait.go what calls wait for. recording.go makes the nodes record
// their set.
// No decision is made here: each event goes through
// Change to nodeset.Membership.

import (
	"cmp"
	"context"
	"errors"
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

func newMembers(ps *Peers, list []string) *members {
	s := &members{ps: ps, known: nodeset.NewMembership(list), logged: map[int]nodeset.SetFault{}}
	s.Recorder.members = s
	signal := make(chan struct{})
	s.signal.Store(&signal)
	s.Named.Store(&naming{Guard: ps.Set.Guard, Retention: ps.Set.Retention})
	return s
}

// Change passes an event to nodeset.Membership, and does what it says about
// other nodes. It returns what is to be done about node by as its connection
// begins; by is -1 for an event of no connection.
// The order is: the copies for readers, then the claims, then the name in
// requests. moving counts the calls between the first and the last step. Only
// the last of several that overlap names the new configuration.
func (s *members) Change(by int, event func(m *nodeset.Membership)) (own []nodeset.RecordStep) {
	s.mu.Lock()
	event(s.known) //mutant:NameLast=event(s.known); s.name()
	todo := s.known.Out
	s.known.Out = nil
	config, wrong := s.known.Config(), s.setError(s.known.Wrong())
	was, before := s.Config.Swap(config), s.wrong.Swap(wrong)
	if config != was || (wrong == nil) != (before == nil) {
		s.changed()
	}
	s.moving++
	// recording is set under s.mu, so of two events that both find a recording
	// to be due one starts the task.
	due := !s.Recorder.recording && s.due()
	s.Recorder.recording = s.Recorder.recording || due
	s.mu.Unlock()
	if due {
		s.ps.Tasks.Start(s.Recorder.record)
	}
	for s.followed() {
	}
	s.mu.Lock()
	if s.moving--; s.moving == 0 {
		s.name()
	}
	s.mu.Unlock()
	return s.CarryOut(by, todo)
}

// due reports whether this client must have the nodes record a set. Called with
// s.mu held.
func (s *members) due() bool {
	return !s.ps.Set.LooksOnly && s.Recorder.declaring == 0 && s.known.Due()
}

// changed wakes everything that waits for changes. Called with s.mu held.
func (s *members) changed() {
	signal := make(chan struct{})
	close(*s.signal.Swap(&signal))
}

// name makes requests name the configuration that counts now. Called with s.mu
// held.
func (s *members) name() {
	c := s.known.Config()
	if c == nil {
		return // no request is made
	}
	n := naming{Home: script.HomeOf(c.Stamp), Guard: c.Guard(), Retention: c.Retention()}
	if n != *s.Named.Load() {
		s.Named.Store(&n)
		s.changed()
	}
}

// CarryOut does what nodeset.Membership says about other nodes than by, and
// returns the rest. A step is for by alone. Another node that has to take one
// is connected to again, and its own handshake finds out; but a member that has
// left gets its last step as its connection ends.
func (s *members) CarryOut(by int, todo []nodeset.SetAction) (own []nodeset.RecordStep) {
	for _, a := range todo {
		switch {
		case a.Reconnect: // by a task: no reader may wait for New
			s.ps.Tasks.Start(func() {
				if n := s.ps.Node(a.Node); n != nil {
					n.Link.Reconnect(fault.ErrRejudged)
				}
			})
		case a.Ask > 0:
			s.ask(a.Node, a.Ask)
		case a.Begin, a.Cease:
			s.keep(a.Node)
		case a.Kind == nodeset.SetRetire:
			if n := s.ps.Node(a.Node); n != nil { // it goes before the end of the connection
				n.Send(&flow.Request{Command: s.setStep(nil, a.RecordStep, n.Info().Run())})
			}
		case a.Node == by:
			own = append(own, a.RecordStep)
		}
	}
	return own
}

// ask asks a member what it keeps, and what its register says of what follows.
// If no answer comes, judgeAgain asks again: it has the node judged that waits
// for the answer.
//
// It starts no goroutine and waits for nothing.
func (s *members) ask(i int, number uint32) {
	n, c := s.ps.Node(i), s.Config.Load()
	if n == nil || c == nil {
		return
	}
	// The set is read before and after: what the register says is the word of
	// the member that the server is then.
	set := resp.AppendCommand(nil, script.ReadLong(script.SetKey(s.ps.Set.Prefix))...)
	register := script.NewKeys(s.ps.Set.Prefix, nodeset.SuccessorName(c.Stamp)).Record()
	var before string
	var unread error // the register: a node that refuses to say what follows says nothing
	next := nodeset.RecordedNext{Of: c.Stamp}
	n.Send(&flow.Request{Command: set, Then: func(v []resp.Value, _ error) {
		before = flow.Text(v, 0)
	}}, &flow.Request{Command: resp.AppendCommand(nil, script.ReadLong(register)...), Then: func(v []resp.Value, err error) {
		unread = err
		next.Version, next.Config = script.ParseSuccessor(flow.Text(v, 0))
	}}, &flow.Request{Command: set, Then: func(v []resp.Value, err error) {
		has, ok := nodeset.ParseNodeSet(flow.Text(v, 0))
		if err != nil || unread != nil || !ok || flow.Text(v, 0) != before {
			return
		}
		s.Change(-1, func(m *nodeset.Membership) { m.HandleReport(i, number, has, next) })
	}})
}

// askServes asks a node whether it still serves the configuration that requests
// name. What it shows instead is found out by the next connection.
// A client that is idle asks too.
func (n *Node) askServes() {
	s := n.ps.Members
	n.Send(&flow.Request{Command: resp.AppendCommand(nil, script.ReadShort(s.MarkerKey())...), Then: func(v []resp.Value, err error) {
		if err == nil && flow.Text(v, 0) == "" {
			s.Change(n.Index, func(m *nodeset.Membership) { m.Refused(n.Index) })
		}
	}})
}

// setStep encodes a step of the set's register. The id is that of the
// incarnation which the node begins if the step gives it a place: fresh for
// each step, as in mark.
func (s *members) setStep(dst []byte, step nodeset.RecordStep, run string) []byte {
	if step.Kind == nodeset.SetLife {
		step.Life = NewID().String()
	}
	return script.AppendSet(dst, s.ps.Set.Prefix, step, NewID(), run)
}

// CheckSet returns the error of a command in the words of this client. A node
// that refuses it because of its set is connected to again (Refused), and the
// next handshake reads its record. The caller holds no lock: Change calls
// attempts.
//
// Where a connection was given up to judge the node again, the error of a call
// names why the node has no vote, and not that pause (TestForgetfulNode).
func (s *members) CheckSet(node int, err error) error {
	if errors.Is(err, fault.ErrRejudged) {
		return cmp.Or(s.unfit(node), err)
	}
	e, refused := errors.AsType[resp.Error](err)
	if !refused || e.Code() != script.OtherSet {
		return err
	}
	var v nodeset.SetVerdict
	s.Change(node, func(m *nodeset.Membership) { m.Refused(node); v = m.Verdict(node) })
	return cmp.Or(s.VerdictError(v), error(fault.ErrOtherSet))
}

// followed has all that is under way count on the configuration that counts
// now, and reports whether there was something to do. If another goroutine does
// so already, that one goes on with it.
// One goroutine at a time calls it, without a lock.
func (s *members) followed() bool {
	if s.Config.Load() == nil {
		return false
	}
	s.mu.Lock()
	c := s.known.Config()
	// Set before the work, not after it: what another goroutine learns
	// meanwhile is another configuration, which the next call finds.
	if s.following || c == nil || c == s.counted {
		s.mu.Unlock()
		return false
	}
	was := s.counted
	s.following, s.counted = true, c
	g := s.known.Group()
	s.mu.Unlock()
	if was == nil {
		if s.ps.Set.Development && s.ps.Set.First() && c.Guard() != s.ps.Set.Guard {
			s.ps.Set.Logger.Warn("quorate: this node was first used with production settings, so its guard time applies; ForDevelopment() changes only this client's TTL",
				"guard", c.Guard(), "ttl", s.ps.Set.TTL)
		}
		for _, addr := range s.list() {
			if c.Place(addr) < 0 {
				s.ps.Set.Logger.Info("quorate: a listed node is not a member of the set and has no vote; remove it from this client's list", "node", addr, "set", c.Addrs())
			}
		}
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

// keep connects to node i if it is wanted, at the address that the set records,
// and drops it otherwise.
// It checks again after acting, because the actions of two events may be carried
// out in either order.
func (s *members) keep(i int) {
	ps := s.ps
	s.mu.Lock() // one lock for both: the address is that of the member that is wanted
	wanted, addr := s.known.Wants(i), s.known.Addr(i)
	s.mu.Unlock()
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
		c, own, err := ps.Clients.ClientFor(addr)
		if err != nil {
			ps.Set.Logger.Warn("quorate: cannot connect to a member of the set", "node", addr, "error", err)
			return
		}
		if err = ps.pool(i).Connect(ps, i, addr, c, own); err == nil {
			s.keep(i)
		} else if own {
			_ = c.Close() // Close has begun, or another call has connected it
		}
	})
}

// counts waits until claims count on node i and requests name the configuration
// that contains it: the node's events and its handshake depend on these. It
// returns false if the configuration no longer has that number, or if the
// Quorum closes.
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

// Drop ends a node permanently. It does not wait: n.Ended is closed when
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
		n.FailQueued()
		ps.Members.Change(-1, func(m *nodeset.Membership) { m.Down(n.Index) })
		if !n.Seed() {
			ps.Driver.CarryOut(ps.Driver.Client.Down(ps.Now(), n.Index))
			n.noteRecovering(protocol.Answer{Status: protocol.OK})
			ps.Observer.Call(setup.Event{Kind: setup.EventNodeLeft, Node: n.Addr})
		}
		ps.Set.Logger.Debug("quorate: node is no longer used", "node", n.Addr)
	})
}
