package peers

// This file owns members: the lock around nodeset.Membership, and the order in
// which its outcome reaches claims, requests and connections. errors.go has the
// words for its verdicts, members_node.go what a new connection does with them,
// members_wait.go what calls wait for. recording.go has the nodes record their
// set.
// Invariant: see members. No decision is made here: each event goes through
// change to nodeset.Membership.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/script"
)

// members owns the state machine that decides which set this client counts on,
// and what follows from it for the claims and the connections. It is safe
// for concurrent use: mu guards known, moving, counted,
// following and logged, and each write of signal. The other fields are copies
// for readers without mu. Lock order: mu is a leaf.
// Invariant: requests name another configuration only once each claim knows
// which nodes it has.
type members struct {
	ps        *Peers
	mu        sync.Mutex
	known     *nodeset.Membership
	moving    int                    // events whose outcome claims have not heard yet
	counted   *nodeset.Configuration // that the claims count on
	following bool                   // a goroutine has claims count on another configuration
	logged    map[int]nodeset.SetFault
	signal    atomic.Pointer[chan struct{}]         // closed when what named, config or wrong says has changed
	Named     atomic.Pointer[naming]                // what requests name
	Config    atomic.Pointer[nodeset.Configuration] // nil: no set is known
	wrong     atomic.Pointer[fault.SetError]        // nil: the list is that of the set, as far as is known
	wanted    atomic.Bool                           // a call has asked for a recording, see forgotten
	Met       atomic.Bool                           // a try has waited for the members to be connected to
	saidBlank atomic.Bool                           // the log says that the nodes of the list hold no data
	Recorder  recorder
}

// naming is what requests name: the configuration, by the key of its marker,
// and its settings.
type naming struct {
	Home             script.Home
	Guard, Retention time.Duration
}

func newMembers(ps *Peers, list []string) *members {
	s := &members{ps: ps, known: nodeset.NewMembership(list, rule.Protocol()), logged: map[int]nodeset.SetFault{}}
	s.Recorder.members, s.Recorder.One = s, make(chan struct{}, 1)
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
	event(s.known)
	todo := s.known.Out
	s.known.Out = nil
	if !rule.On(rule.NameLast) {
		s.name()
	}
	s.publish()
	s.moving++
	// recording is set under s.mu, so of two events that both find a recording
	// to be due one starts the task.
	due := !s.Recorder.recording && s.known.Due()
	s.Recorder.recording = s.Recorder.recording || due
	s.mu.Unlock()
	if due {
		s.ps.Tasks.Start(s.Recorder.record)
	}
	s.follow()
	s.mu.Lock()
	if s.moving--; s.moving == 0 {
		s.name()
	}
	s.mu.Unlock()
	return s.CarryOut(by, todo)
}

// publish stores the copies for readers without mu. Called with s.mu held.
func (s *members) publish() {
	config, wrong := s.known.Config(), s.setError(s.known.Wrong())
	was, before := s.Config.Swap(config), s.wrong.Swap(wrong)
	if config != was || (wrong == nil) != (before == nil) {
		s.changed()
	}
}

// changed wakes what waits for changes. Called with s.mu held.
func (s *members) changed() {
	signal := make(chan struct{})
	close(*s.signal.Swap(&signal))
}

// name has requests name what counts now. Called with s.mu held.
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

// Usable reports whether a claim can begin.
// Invariant: no claim begins before requests name a set.
func (s *members) Usable() bool { return s.Config.Load() != nil && s.Home() != "" }

func (s *members) Home() script.Home { return s.Named.Load().Home }

// MarkerKey is the key of the marker that this client's requests go by. Each
// caller takes it for one command. If the set goes on meanwhile, the command
// names the marker of before, which the node has no more: no answer to it
// counts (rule 1).
func (s *members) MarkerKey() string { return s.Home().Marker(s.ps.Set.Prefix) }

// Guard is that of the set, or of this client while no set is known.
func (ps *Peers) Guard() time.Duration { return ps.Members.Named.Load().Guard }

// CarryOut does what nodeset.Membership says about other nodes than by, and
// returns the rest. A step is for by alone: a node gets it on the connection
// that has shown why it is needed. Another node that has to take one is
// connected to again, and its own handshake finds out. A member that has left
// is the exception: it gets its last step as its connection ends.
func (s *members) CarryOut(by int, todo []nodeset.SetAction) (own []nodeset.RecordStep) {
	for _, a := range todo {
		switch {
		case a.Reconnect:
			s.rejudge(a.Node)
		case a.Ask > 0:
			s.ask(a.Node, a.Ask)
		case a.Begin, a.Cease:
			s.keep(a.Node)
		case a.Kind == nodeset.SetRetire:
			s.retire(a.RecordStep)
		case a.Node == by:
			own = append(own, a.RecordStep)
		}
	}
	return own
}

// rejudge has a node connect again. It is a task: no reader may wait for New.
func (s *members) rejudge(i int) {
	s.ps.Tasks.Start(func() {
		if n := s.ps.Node(i); n != nil {
			n.Link.Reconnect(fault.ErrRejudged)
		}
	})
}

// retire has a member that has left keep what followed. It goes before the end
// of the connection in the order of that.
func (s *members) retire(step nodeset.RecordStep) {
	if n := s.ps.Node(step.Node); n != nil {
		n.Send(&flow.Request{Command: s.setStep(nil, step, n.Info().Run())})
	}
}

// ask asks a member what it keeps, and what its register says of what follows.
// If no answer comes, judgeAgain asks again: it has the node judged that waits
// for the answer.
//
// Invariant: ask starts no goroutine and waits for nothing.
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
		s.Change(-1, func(m *nodeset.Membership) { m.Told(i, number, has, next) })
	}})
}

// keeps returns a command whose answer is what the node keeps of its set. The
// answer goes to nodeset.Membership.
func (n *Node) keeps(command []byte, then func(m *nodeset.Membership, has nodeset.NodeSet)) *flow.Request {
	return &flow.Request{Command: command, Then: func(v []resp.Value, err error) {
		has, ok := nodeset.ParseNodeSet(flow.Text(v, 0))
		if err != nil || !ok {
			return
		}
		n.ps.Members.Change(-1, func(m *nodeset.Membership) {
			if n.serves(m) {
				then(m, has)
			}
		})
	}}
}

// serves reports whether a node still is the one with its index, so that what
// it shows is that of the address. Called with members.mu held.
func (n *Node) serves(m *nodeset.Membership) bool {
	return !n.Dropped.Load() && n.Addr == m.Addr(n.Index)
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
