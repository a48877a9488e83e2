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
	"github.com/quorate/quorate/internal/transport"
)

func newMembers(ps *Peers, list []string) *members {
	s := &members{ps: ps, known: nodeset.NewMembership(list), logged: map[int]nodeset.SetFault{}}
	s.Recorder.ps, s.Recorder.members = ps, s
	signal := make(chan struct{})
	s.signal.Store(&signal)
	s.Named.Store(&naming{Guard: ps.Set.Guard, Retention: ps.Set.Retention})
	return s
}

// Change passes an event to nodeset.Membership, and carries out what it decides
// about other nodes. It returns the steps for node by, whose connection is just
// beginning; by is -1 if the event belongs to no connection. It first updates
// the copies for readers, then the claims, and then the configuration that
// requests name. moving counts the calls between the first and the last of
// these steps. If calls overlap, only the last one names the new configuration.
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
	// recording is set under s.mu, so if two events find a recording due,
	// only one starts the task.
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
	return !s.ps.Set.LooksOnly && s.Recorder.declaring == 0 && s.known.Recorder.Due()
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

// CarryOut carries out what nodeset.Membership decides about nodes other than
// by, and returns the steps for by. If another node needs a step, it is
// reconnected, and its handshake takes the step. Only a member that has left
// gets its last step at the end of its connection.
func (s *members) CarryOut(by int, todo []nodeset.SetAction) (own []nodeset.RecordStep) {
	for _, a := range todo {
		switch {
		case a.Reconnect: // in a task, because a reader must not wait for New
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
			if n := s.ps.Node(a.Node); n != nil { // sent before the connection ends
				n.Send(&flow.Request{Command: s.setStep(nil, a.RecordStep, n.Info().Run())})
			}
		case a.Node == by:
			own = append(own, a.RecordStep)
		}
	}
	return own
}

// ask asks a member which set it has recorded, and what its register says about
// the next configuration. If no answer comes, judgeAgain asks again when it
// judges the node that waits for the answer.
//
// It starts no goroutine and waits for nothing.
func (s *members) ask(i int, number uint32) {
	n, c := s.ps.Node(i), s.Config.Load()
	if n == nil || c == nil {
		return
	}
	// Read the set before and after the register, to know which member the
	// server was when it answered.
	set := resp.AppendCommand(nil, script.ReadLong(script.SetKey(s.ps.Set.Prefix))...)
	register := script.NewKeys(s.ps.Set.Prefix, nodeset.SuccessorName(c.Stamp)).Record()
	var before string
	var unread error // error of the register: then the node has not said what follows
	next := nodeset.RecordedNext{Of: c.Stamp}
	n.Send(&flow.Request{Command: set, Then: func(v []resp.Value, _ error) {
		before = flow.Text(v, 0)
	}}, &flow.Request{Command: resp.AppendCommand(nil, script.ReadLong(register)...),
		Then: func(v []resp.Value, err error) {
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
// name. If it does not, the next connection finds out what it serves. Even an
// idle client asks.
func (n *Node) askServes() {
	s := n.ps.Members
	n.Send(&flow.Request{Command: resp.AppendCommand(nil, script.ReadShort(s.MarkerKey())...),
		Then: func(v []resp.Value, err error) {
			if err == nil && flow.Text(v, 0) == "" {
				s.Change(n.Index, func(m *nodeset.Membership) { m.Refused(n.Index) })
			}
		}})
}

// setStep encodes a step of recording the set. It includes a fresh random id,
// from which the node makes an incarnation if the step gives it a place, as in
// mark.
func (s *members) setStep(dst []byte, step nodeset.RecordStep, run string) []byte {
	if step.Kind == nodeset.SetLife {
		step.Life = NewID().String()
	}
	return script.AppendSet(dst, s.ps.Set.Prefix, step, NewID(), run)
}

// CheckSet translates the error of a command. If a node refuses the command
// because of its set, the node is reconnected (Refused), and the next handshake
// reads its record. The caller holds no lock, because Change calls attempts.
//
// If a connection was ended in order to judge the node again, the error is why
// the node has no vote, and not that the connection has ended
// (TestForgetfulNode).
func (s *members) CheckSet(node int, err error) error {
	if errors.Is(err, fault.ErrRejudged) || errors.Is(err, transport.ErrNoVote) {
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

// followed makes all claims and operations count on the current configuration,
// and reports whether there was something to do. If another goroutine is
// already doing so, that goroutine goes on. Called without a lock.
func (s *members) followed() bool {
	if s.Config.Load() == nil {
		return false
	}
	s.mu.Lock()
	c := s.known.Config()
	// Set counted before the work: if another goroutine learns of yet another
	// configuration meanwhile, the next call finds it.
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
			s.ps.Set.Logger.Warn("quorate: this node was first used with production settings, so its guard time "+
				"applies; ForDevelopment() changes only this client's TTL",
				"guard", c.Guard(), "ttl", s.ps.Set.TTL)
		}
		s.logUnlisted(c)
	} else {
		s.ps.Set.Logger.Info("quorate: the set of nodes has changed", "stage", c.Stage.String(), "epoch",
			c.Stamp.Epoch(), "from", was.Addrs(), "to", c.Addrs())
		s.ps.Observer.Call(setup.Event{Kind: setup.EventSetChanged})
	}
	// Each number gets a node before a claim learns of it. The node's
	// connection begins when claims count on it, see keep.
	s.ps.Nodes.Grow(s.ps, g.Nodes)
	s.regroup(g)
	s.mu.Lock()
	s.following = false
	s.mu.Unlock()
	return true
}

// regroup makes all claims and operations count on other nodes.
// Invariant: a claim gets the events of Each, and an operation those of
// EachOperation, before it reads the Client's group. The Client gets the new
// group before they are listed here. So each one counts on the new group,
// either from its start or because of this call.
func (s *members) regroup(g protocol.Group) {
	ps := s.ps
	ps.Driver.CarryOut(ps.Driver.Client.Regroup(ps.Now(), g))
	ps.Claims.Each(func(c *process.Attempt, now protocol.Time) { c.Regroup(now, g) })
	ps.Claims.EachOperation(func(in *lease.RegisterOp, now protocol.Time) { in.Regroup(now, g) })
	ps.Claims.Signal()
}

// keep connects to node i, at the address that the set records, if the set
// contains it, and drops it otherwise. It checks again afterwards, because the
// actions of two events may be carried out in either order.
func (s *members) keep(i int) {
	ps := s.ps
	s.mu.Lock() // read both under one lock, so that the address belongs to the wanted member
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
	// In a task, because connect waits up to a node timeout until the previous
	// node with this index has ended, and the caller may be a reader.
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
			return false // the node is connected when a configuration that contains it begins to count
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
	// In a task, because the caller may be the link's own goroutine, for which
	// the link's Close waits.
	ps.Tasks.Start(func() { // if no task can start, Close ends the node
		defer close(n.Ended)
		ctx, cancel := context.WithTimeout(context.Background(), n.Timeout(&ps.Set))
		defer cancel()
		_ = n.end(ctx) // the error only says how much was unanswered
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
