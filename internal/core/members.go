package core

// This file owns members: the lock around protocol.Membership, and the order in which its outcome reaches claims, requests
// and connections. members_errors.go has the words for its verdicts, members_node.go what a new connection does with
// them, members_views.go what other parts of this package read of it. follow.go exchanges the nodes.
//
// Invariant: see members. No decision is made here: each event goes through change to protocol.Membership.

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// members owns the state machine that decides which set this client counts on, and what follows from it for the
// claims and the connections of q. It is safe for concurrent use: mu guards known, moving, regains, promised and logged. The other fields are
// copies for readers without mu. Lock order: mu is a leaf.
//
// Invariant: requests name another configuration only once each claim knows which nodes are outside of it.
// Without that order a claim counts a vote of before with one of that configuration.
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
	s.known.Exchanges = true
	s.named.Store(new(script.Home))
	return s
}

// change passes an event to protocol.Membership, and does what it says about other nodes. It
// returns what is to be done about node by as its connection begins; by is -1 for an event of no
// connection. It may be called from any goroutine that holds no lock: it calls attempts, whose locks come
// before mu.
//
// The order is: the copies for readers, then the claims, then the name in requests. moving counts the
// calls between the first and the last step. Only the last of several that overlap names the new
// configuration: an earlier one would, before the claims have heard of the later event.
func (s *members) change(by int, event func(m *protocol.Membership)) (own []protocol.RecordStep) {
	s.mu.Lock()
	event(s.known)
	todo := s.known.Out
	s.known.Out = nil
	outside := s.known.Outside()
	changed := s.outside.Swap(outside) != outside
	if !on(RuleNameLast) {
		s.name()
	}
	s.config.Store(s.known.Config())
	s.wrong.Store(s.setError(s.known.Wrong()))
	s.moving++
	regains := !s.regains && s.known.Regains()
	s.regains = s.regains || regains
	s.mu.Unlock()
	if regains {
		s.q.tasks.start(s.regain)
	}
	if changed {
		for _, a := range s.q.attempts.all() {
			a.event(func(c *protocol.Attempt, now protocol.Time) { c.Exclude(now, s.outside.Load()) })
		}
	}
	s.follow()
	s.q.discovery.wanted()
	s.mu.Lock()
	if s.moving--; s.moving == 0 {
		s.name()
	}
	s.mu.Unlock()
	return s.carryOut(by, todo)
}

// name has requests name the configuration that counts now. Called with s.mu held.
func (s *members) name() {
	if home := script.HomeOf(s.known.Stamp()); home != *s.named.Load() {
		s.named.Store(&home)
	}
}

// carryOut does what protocol.Membership says about other nodes than by, and returns the rest.
func (s *members) carryOut(by int, todo []protocol.SetAction) (own []protocol.RecordStep) {
	for _, a := range todo {
		switch {
		case a.Reconnect:
			s.rejudge(a.Node)
		case a.Begin, a.Cease:
			s.keep(a.Node)
		case a.Node == by:
			own = append(own, a.RecordStep)
		}
	}
	return own
}

// rejudge has a node connect again. New may not have got as far as that node.
func (s *members) rejudge(node int) {
	s.q.tasks.start(func() {
		select {
		case <-s.q.built:
			s.q.nodes.at(node).link.Reconnect(errRejudged)
		case <-s.q.closing:
		}
	})
}

// setStep encodes a step of the set's register.
func (s *members) setStep(dst []byte, n *node, step protocol.RecordStep) []byte {
	return script.AppendSet(dst, s.q.set.Prefix, step, newID(), cmp.Or(n.info().Run(), "-"), s.q.set.Guard, s.q.set.Retention)
}
