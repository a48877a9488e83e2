package core

// This file owns members: the lock around protocol.Membership, and the order in
// which its outcome reaches claims, requests and connections. members_errors.go
// has the words for its verdicts, members_node.go what a new connection does
// with them, members_views.go what other parts of this package read of it.
// follow.go exchanges the nodes.
//
// Invariant: see members. No decision is made here: each event goes through
// change to protocol.Membership.

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// members owns the state machine that decides which set this client counts on,
// and what follows from it for the claims and the connections of q. It is safe
// for concurrent use: mu guards known, moving, regains, promised and logged.
// The other fields are copies for readers without mu. Lock order: mu is a leaf.
//
// Invariant: requests name another configuration only once each claim knows
// which nodes are outside of it. Without that order a claim counts a vote of
// before with one of that configuration.
type members struct {
	q         *Quorum
	mu        sync.Mutex
	known     *protocol.Membership
	moving    int                     // events whose outcome claims have not heard yet
	regains   bool                    // regain runs
	promised  protocol.Ballot         // the highest one that regain has met
	counted   *protocol.Configuration // that the claims count on
	following bool                    // a goroutine has claims count on another configuration
	logged    [maxNodes]protocol.SetFault
	named     atomic.Pointer[script.Home]            // the home that requests name
	config    atomic.Pointer[protocol.Configuration] // nil: no set is known
	outside   atomic.Uint32                          // nodes that are not known to be members, a bit for each
	wrong     atomic.Pointer[SetError]               // nil: the list is that of the set, as far as is known
}

func newMembers(q *Quorum, addrs []string) *members {
	s := &members{q: q, known: protocol.NewMembership(addrs, rules())}
	// This runtime can connect to nodes beside those of its list. Without
	// Exchanges a node of a later epoch counts as one of another set.
	s.known.Exchanges = true
	// Readers of named need no check for nil. The empty Home is that of nodes
	// without a set.
	s.named.Store(new(script.Home))
	return s
}

// change passes an event to protocol.Membership, and does what it says about
// other nodes. It returns what is to be done about node by as its connection
// begins; by is -1 for an event of no connection. It may be called from any
// goroutine that holds no lock: it calls attempts, whose locks come before mu.
//
// The order is: the copies for readers, then the claims, then the name in
// requests. moving counts the calls between the first and the last step. Only
// the last of several that overlap names the new configuration: an earlier one
// would, before the claims have heard of the later event.
func (s *members) change(by int, event func(m *protocol.Membership)) (own []protocol.RecordStep) {
	s.mu.Lock()
	event(s.known)
	todo := s.known.Out
	s.known.Out = nil
	outside, others, doubts := s.known.Outside(), s.known.Others(), s.known.Doubts()
	// outside is stored before any attempt is called. start registers an
	// attempt, and then reads outside. So each attempt hears of the change by
	// its start or by the loop below.
	changed := s.outside.Swap(outside) != outside || others|doubts != 0
	outside |= doubts // they were, until this event
	if !on(RuleNameLast) {
		s.name()
	}
	s.config.Store(s.known.Config())
	s.wrong.Store(s.setError(s.known.Wrong()))
	s.moving++
	// regains is set under s.mu, so of two events that both find the set to be
	// regained one starts the task.
	regains := !s.regains && s.known.Regains()
	s.regains = s.regains || regains
	s.mu.Unlock()
	if regains {
		s.q.tasks.start(s.regain)
	}
	// The claims read outside when they are called, too. If two events overlap,
	// the later value may reach a claim first, and an earlier one must not
	// replace it. The value of this event comes first: without it a claim would
	// not learn that a node was outside that is known by now, and what the node
	// said before would count (TestEventsThatOverlap). Others are of this
	// event: what they said is forgotten before their new connections bring an
	// answer.
	if changed {
		for _, a := range s.q.attempts.all() {
			a.event(func(c *protocol.Attempt, now protocol.Time) {
				last := s.outside.Load()
				c.Exclude(now, outside|last, others)
				c.Exclude(now, last, 0)
			})
		}
		s.q.records.exclude(s, outside, others)
	}
	s.follow()
	// The verdict may be that the list is refused. That is one of the two
	// reasons to ask the user's function for addresses: see helps.
	s.q.discovery.wanted()
	s.mu.Lock()
	if s.moving--; s.moving == 0 {
		s.name()
	}
	s.mu.Unlock()
	return s.carryOut(by, todo)
}

// name has requests name the configuration that counts now. Called with s.mu
// held.
func (s *members) name() {
	if home := script.HomeOf(s.known.Stamp()); home != *s.named.Load() {
		s.named.Store(&home)
	}
}

// carryOut does what protocol.Membership says about other nodes than by, and
// returns the rest. A step is for by alone: a node gets it on the connection
// that has shown why it is needed. Another node that has to take one is
// connected to again, and its own handshake finds out.
func (s *members) carryOut(by int, todo []protocol.SetAction) (own []protocol.RecordStep) {
	for _, a := range todo {
		switch {
		case a.Reconnect:
			s.rejudge(a.Node)
		case a.Ask > 0:
			s.ask(a.Node, a.Ask)
		case a.Begin, a.Cease:
			s.keep(a.Node)
		case a.Node == by:
			own = append(own, a.RecordStep)
		}
	}
	return own
}

// rejudge has a node connect again. New may not have got as far as that node.
// It is a task: the caller may be in the handshake of the first node while New
// makes the others, and no reader may wait for New.
func (s *members) rejudge(node int) {
	s.q.tasks.start(func() {
		select {
		case <-s.q.built:
			s.q.nodes.at(node).link.Reconnect(errRejudged)
		case <-s.q.closing:
		}
	})
}

// ask asks a node what it keeps. If no answer comes, judgeAgain asks again: it
// has the node judged that waits for the answer.
//
// Invariant: ask starts no goroutine and waits for nothing. Close waits for
// tasks, so a task that waits for a hung node would delay it.
func (s *members) ask(node int, number uint32) {
	n := s.q.nodes.at(node)
	n.send(n.keeps(resp.AppendCommand(nil, "GET", script.SetKey(s.q.set.Prefix)), func(m *protocol.Membership, has protocol.NodeSet) {
		m.Told(node, number, has)
	}))
}

// keeps returns a command whose answer is what the node keeps of its set. The
// answer goes to protocol.Membership.
func (n *node) keeps(command []byte, then func(m *protocol.Membership, has protocol.NodeSet)) *adminRequest {
	return &adminRequest{command: command, reply: func(v []resp.Value, err error) {
		has, ok := protocol.ParseNodeSet(text(v, 0))
		if err != nil || !ok {
			return
		}
		n.q.members.change(-1, func(m *protocol.Membership) {
			if !n.dropped.Load() { // under members.mu: another node may have the index from then on
				then(m, has)
			}
		})
	}}
}

// setStep encodes a step of the set's register. The id is that of the
// incarnation which the node begins if the step gives it a place: fresh for
// each step, as in mark. The run goes with it, so the next connection to the
// same run does not take the node for one that has forgotten.
func (s *members) setStep(dst []byte, n *node, step protocol.RecordStep) []byte {
	if step.Kind == protocol.SetLife {
		step.Life = newID().String()
	}
	return script.AppendSet(dst, s.q.set.Prefix, step, newID(), cmp.Or(n.info().Run(), "-"), s.q.set.Guard, s.q.set.Retention)
}
