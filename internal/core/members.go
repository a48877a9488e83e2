package core

// This file carries out what protocol.Membership and protocol.Recording decide: which set of nodes this
// client counts on, and how a set is recorded.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
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

// SetError says that a client's list of nodes is another one than that of the set.
type SetError struct {
	List  []string // of the client
	Set   []string // of the nodes
	Odd   string   // a node of List that is not of the set; empty if the lists differ in length
	Since time.Time
}

func (e *SetError) Error() string {
	odd := ""
	if e.Odd != "" {
		odd = fmt.Sprintf(": %s is not one of them", e.Odd)
	}
	return fmt.Sprintf("the list of this client, %s, is not that of its nodes, which are the set %s since %s%s; "+
		"two lists can let two holders in: give every client the list of the set",
		strings.Join(e.List, " "), strings.Join(e.Set, " "), e.Since.UTC().Format(time.DateTime+" MST"), odd)
}

// Unwrap returns the kind.
func (e *SetError) Unwrap() error { return ErrInvalid }

// MemberError says why a node of the list has no vote in its set.
type MemberError struct {
	why   string
	final bool // it does not pass by itself
}

func (e *MemberError) Error() string { return e.why }

var (
	errSetPending = &MemberError{why: "is about to be recorded as a node of a set; if that does not end, run \"quorate bootstrap --record\" with that set's list"}
	errSetLost    = &MemberError{why: "lost its data, and fewer than a majority of the set's nodes can say what it was; " +
		"it gets its place back by itself when all nodes of the set answer: start those that are down, or empty servers at their addresses"}
	errSetBetween = &MemberError{why: "lost its data while the nodes of the set were being exchanged, and too few of the others can say what it was; " +
		"start those that are down with their data. If that is lost, stop all clients, empty all nodes of the set, and run \"quorate bootstrap\" with their list"}
	errSetForgotten = &MemberError{why: "too few nodes of the list can say which set it was; " +
		"if the data of the others is lost, stop all clients, empty all nodes of the list, and run \"quorate bootstrap\""}
	errSetElsewhere = &MemberError{why: "was a node of this set, and has the data of another set now; give the set's node back its address, or empty this one", final: true}
	errSetRetired   = &MemberError{why: "is no node of the set any more; take it from the list of this client", final: true}
	errSetFull      = &MemberError{why: "is of a set that has exchanged more nodes than one process can follow; restart this process with the list of the set", final: true}
	errOtherSet     = &MemberError{why: "is not of the set that this client counts on; it is asked which one it is of"}
	errRejudged     = errors.New("the set of nodes has become known")
)

// change passes an event to protocol.Membership, and does what it says about other nodes. It
// returns what is to be done about node by as its connection begins.
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

// setError returns the error for a verdict that concerns all nodes, nil if there is none. Called with s.mu held.
func (s *members) setError(v protocol.SetVerdict) *SetError {
	if v.Fault != protocol.SetWrong {
		return nil
	}
	e := &SetError{List: s.known.List(), Set: v.Set.Addrs(), Since: v.Set.Stamp.Since()}
	if len(e.List) == len(e.Set) {
		e.Odd = s.known.Addr(v.Node)
	}
	return e
}

// verdictError returns why a node has no vote, nil if it has.
func (s *members) verdictError(v protocol.SetVerdict) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v.Fault {
	case protocol.SetWrong:
		return s.setError(v)
	case protocol.SetPending:
		return errSetPending
	case protocol.SetLost:
		if v.Set != nil && v.Set.Stage != protocol.Stable {
			return errSetBetween
		}
		return errSetLost
	case protocol.SetElsewhere:
		return errSetElsewhere
	case protocol.SetRetired:
		return errSetRetired
	case protocol.SetFull:
		return errSetFull
	case protocol.SetAlias:
		return &MemberError{final: true, why: fmt.Sprintf("reaches %s, which is used by the address that the set records", s.q.addr(v.Other))}
	case protocol.SetCopied:
		return &MemberError{final: true, why: fmt.Sprintf("has a copy of the data of %s, and with it that node's identity, so its vote would count twice; "+
			"empty it before it is used as a node of its own", s.q.addr(v.Other))}
	}
	return nil
}

// list returns the addresses of the client's list.
func (s *members) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.List()
}

// home is the Home that requests name now.
func (s *members) home() script.Home { return *s.named.Load() }

// markerKey is the key of the marker that this client's requests go by.
func (s *members) markerKey() string { return s.home().Marker(s.q.set.Prefix) }

// meet finds out of which set a node is that a connection has just reached. If done, there is nothing more to say to the node than what is
// returned.
func (n *node) meet(run string) (cmds []transport.Command, done bool, err error) {
	q := n.q
	p := &n.probed
	has, ok := protocol.ParseNodeSet(p.set)
	if !ok {
		return nil, true, fmt.Errorf("its record of the set of nodes makes no sense; the key is %q", script.SetKey(q.set.Prefix))
	}
	if n.later != nil {
		n.later.Stop()
	}
	var v protocol.SetVerdict
	left := false // under members.mu: another node may have the index from then on
	for _, s := range q.members.change(n.index, func(m *protocol.Membership) {
		if left = n.dropped.Load(); !left {
			v = m.Met(n.index, run, has)
		}
	}) {
		c := &adminRequest{command: q.members.setStep(nil, n, s)}
		if s.Kind == protocol.SetRestore && s.Config.Members[s.Config.Member(s.Identity)].Role == protocol.Enters {
			q.set.Logger.Info("quorate: a node enters the set; it votes after the guard time", "node", n.addr)
		} else if s.Kind == protocol.SetRestore {
			q.set.Logger.Info("quorate: a node lost its data and is given back its place in the set; it votes after the guard time", "node", n.addr)
		}
		cmds = append(cmds, c)
	}
	if left {
		return nil, true, errRejudged
	}
	n.logVerdict(v)
	switch v.Fault {
	case protocol.SetFits:
		n.pause = 0
		if has.Stamp() == q.members.home().Stamp() && has.Config != nil && p.home == q.members.home() && p.marker == "" && len(cmds) == 0 {
			// The marker is gone, and nothing else: an operator has removed it.
			cmds = append(cmds, &adminRequest{command: q.members.setStep(nil, n, protocol.RecordStep{Node: n.index, Kind: protocol.SetCommit, Identity: has.Identity, Config: has.Config})})
		}
		return cmds, false, nil
	case protocol.SetPending, protocol.SetLost: // the connection serves Bootstrap alone
		n.judgeAgain()
		return nil, true, nil
	}
	return nil, true, q.members.verdictError(v)
}

// judgeAgain has a node without a vote be judged again after a pause. A recording is over in a few round trips, so
// the pause is short at first; one that was interrupted stays until an operator ends it. A node that enters a set has to
// wait until a majority of the others shows that it is to enter.
//
// Invariant: one pause at a time, whatever ends the connection meanwhile.
func (n *node) judgeAgain() {
	q := n.q
	longest := 5 * q.set.NodeTimeout
	if n.pause = min(2*n.pause, longest); n.pause == 0 {
		n.pause = q.set.NodeTimeout / 4
	}
	n.later = time.AfterFunc(n.pause, func() {
		q.members.change(-1, func(m *protocol.Membership) { m.Again(n.index) })
	})
}

// logVerdict logs what is new about a node.
func (n *node) logVerdict(v protocol.SetVerdict) {
	q := n.q
	s := q.members
	s.mu.Lock()
	was := s.logged[n.index]
	s.logged[n.index] = v.Fault
	s.mu.Unlock()
	if v.Fault == was || v.Fault == protocol.SetFits || v.Fault == protocol.SetLost && v.Set.Entering(n.addr) {
		return // a node that enters is empty, and gets its place in a moment
	}
	q.set.Logger.Warn("quorate: a node of the list has no vote", "node", n.addr, "error", s.verdictError(v))
}

// setStep encodes a step of the set's register.
func (s *members) setStep(dst []byte, n *node, step protocol.RecordStep) []byte {
	return script.AppendSet(dst, s.q.set.Prefix, step, newID(), cmp.Or(n.info().Run(), "-"), s.q.set.Guard, s.q.set.Retention)
}

// checkSet returns the error of a command in the words of this client. A node that refuses it because of its
// set is asked which one it is of.
func (s *members) checkSet(node int, err error) error {
	e, refused := errors.AsType[resp.Error](err)
	if !refused || e.Code() != script.OtherSet {
		return err
	}
	var v protocol.SetVerdict
	s.change(node, func(m *protocol.Membership) { m.Refused(node); v = m.Verdict(node) })
	return cmp.Or(s.verdictError(v), error(errOtherSet))
}

// outOfSet returns why a claim with these settings cannot be made, nil if it can.
func (s *members) outOfSet(set *Settings) error {
	if wrong := s.wrong.Load(); wrong != nil {
		return wrong
	}
	if c := s.config.Load(); c != nil && c.Guard < 2*set.TTL+2*set.Skew {
		return &TTLError{TTL: set.TTL, Skew: set.Skew, Guard: c.Guard}
	}
	return nil
}

// roundsToConnect is how many answers a connection may take: the pause before it, the dial, the login, the probe and the mark.
const roundsToConnect = 5

// judged waits until the nodes have been judged that the set does not name as this client's list does: they may be of
// another list. It waits for the time of one connection at most. A shorter wait lets Connect accept a wrong list
// whose odd node is far away or busy. It returns what outOfSet does then.
func (s *members) judged(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundsToConnect*s.q.driver.furthest(&s.q.set))
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		c, waits := s.config.Load(), false
		for _, n := range s.q.nodes.live() {
			if c != nil && c.Place(n.addr) < 0 {
				n.tried(ctx)
				s.mu.Lock()
				waits = waits || !s.known.Judged(n.index)
				s.mu.Unlock()
			}
		}
		if err := s.outOfSet(&s.q.set); err != nil || !waits {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// outside returns why a node that is connected has no vote in the set, nil if it has.
func (n *node) outside() error {
	s := n.q.members
	s.mu.Lock()
	v := s.known.Verdict(n.index)
	s.mu.Unlock()
	return s.verdictError(v)
}

// shown returns what a node has shown of its set, nil if it has shown nothing.
func (n *node) shown() *protocol.NodeSet {
	q := n.q
	s := q.members
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Has(n.index)
}

// reportSet returns what nodes show of their set, and the longest ttl that its guard time covers.
func (s *members) reportSet(nodes []NodeReport) (r protocol.SetReport, ttl time.Duration) {
	has := make([]*protocol.NodeSet, len(nodes))
	for i := range nodes {
		has[i] = nodes[i].Set
	}
	if r = protocol.ReportSet(s.config.Load(), has); r.Config != nil {
		ttl = max(0, r.Config.Guard/2-s.q.set.Skew)
	}
	return r, ttl
}

// TTLError is a ttl that the guard time of the set does not cover.
type TTLError struct{ TTL, Skew, Guard time.Duration }

func (e *TTLError) Error() string {
	return fmt.Sprintf("WithTTL(%v) is too long for this set of nodes, which is recorded with a guard time of %v: a node that lost its data could vote before a lease that it "+
		"forgot has ended; choose WithTTL(%v) or less (half of the guard time less WithSkew(%v)), or record the set with a longer WithGuard when it is new",
		e.TTL, e.Guard, max(0, e.Guard/2-e.Skew), e.Skew)
}

// Unwrap returns the kind.
func (e *TTLError) Unwrap() error { return ErrInvalid }
