package nodeset

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/invariant"
)

// What a server at a member's address counts as, and the events of its
// connection: it reaches a server, becomes ready, and goes away.
// Invariant: a connection counts as member k only while the server at k's
// recorded address shows k's identity. Nothing else has a vote: not a copy of a
// member's data at another address, not a member that was moved without its
// record, not a blank server before q members have said what it was. So each
// member has one vote, and two addresses of one server have one between them.

// bind judges the server at the address of member k.
func (m *Membership) bind(k int) {
	n, member := &m.members[k], m.config.Numbered(k)
	shown := n.has.Recorded()
	switch {
	// What it has accepted does not count, because it may come from a repeated
	// recording that not all members have accepted. It gets its place like a blank
	// server.
	case n.has.Config == nil, shown == nil && (n.has.Stamp() == m.config.Stamp || m.void(n.has.Config)):
		m.lost(k)
	case shown == nil:
		n.fault = SetPending
	case !m.config.Kin(shown):
		n.fault = SetForeign
	case n.has.Identity != member.Identity: //mutant:RuleSetBind
		m.bindOther(k, shown)
	case shown.Stamp == m.config.Stamp:
		n.fault = SetFits
	case shown.Stamp.Compare(m.config.Stamp) < 0:
		// Its guard time goes on.
		m.goesOn(k, RecordStep{Kind: SetMove, Identity: member.Identity, Config: m.config})
	default:
		n.fault = SetAhead
		m.reports.question()
	}
}

// bindOther judges a server of this set that is not the member recorded at its
// address. One that has left the set enters like a blank server. One that shows
// a later configuration, or a member's data, stays as it is.
func (m *Membership) bindOther(k int, shown *Configuration) {
	n := &m.members[k]
	switch {
	case m.config.Member(n.has.Identity) >= 0:
		n.fault = SetOther
	case shown.Stamp.Compare(m.config.Stamp) > 0:
		n.fault = SetAhead
		m.reports.question()
	default:
		m.lost(k)
	}
}

// void reports whether an accepted configuration cannot be recorded any more: a
// node of its list has recorded another set, so it never accepts this one.
func (m *Membership) void(accepted *Configuration) bool {
	void := false
	m.each(func(i int, n *contact) {
		if c := n.has.Recorded(); n.up && c != nil && !c.Kin(accepted) && accepted.Place(m.Addr(i)) >= 0 {
			void = true //mutant:RuleSetVoid
		}
	})
	return void
}

// standIn is a member with the address that the set records for it.
type standIn struct{ identity, addr string }

// Stand has the client of an operator dial a member at another address than the
// recorded one, until the set records another one. An empty address ends this.
//
// Invariant: an operator says that the member's server has moved there, and the
// recorded address does not show the member to this client. Otherwise a copy
// could vote along with the member. bind judges the server at the address as it
// judges each one.
func (m *Membership) Stand(member *Member, addr string) {
	k, stand, was := member.Number, standIn{member.Identity, member.Addr}, m.Addr(member.Number)
	if delete(m.stands, stand); addr != "" {
		if m.stands == nil {
			m.stands = map[standIn]string{}
		}
		m.stands[stand] = addr
	}
	if m.Addr(k) != was {
		m.blank(k, SetUnknown)
		m.do(k, SetAction{Begin: true})
		m.tend()
	}
}

// lost judges a blank server at the address of a member. Once enough members
// say what it was, it gets its place back, and its guard time begins.
func (m *Membership) lost(k int) {
	n := &m.members[k]
	n.fault = SetLost
	switch {
	case m.reports.mayRejoin(k):
		// Seen is what the node stores now. The node refuses the step if that has
		// changed in the meantime, so two clients that restore the same node begin
		// one new incarnation, not two.
		m.goesOn(k, RecordStep{Kind: SetRestore, Identity: m.config.Numbered(k).Identity,
			Config: m.config, Seen: n.has.Text})
	case m.config.Stage != Stable && !m.reports.confirmedByMajority(-1):
		n.fault = SetBetween
	}
}

// goesOn makes a node serve the current configuration, starting with this
// connection's first request.
func (m *Membership) goesOn(k int, s RecordStep) {
	n := &m.members[k]
	n.fault, n.has = SetFits, NodeSet{Phase: SetRecorded, Identity: s.Identity, Config: s.Config}
	m.do(k, SetAction{RecordStep: s})
}

// Met records that a connection has reached a server, and what the server
// stores. It returns what the connection counts as. Out may contain a step for
// the node, which must be sent to it before anything else.
func (m *Membership) Met(i int, has NodeSet) SetVerdict {
	if m.Addr(i) == "" { // it is none any more
		return SetVerdict{Fault: SetRetired, Node: i}
	}
	n := m.at(i)
	n.up, n.ready, n.again, n.met, n.has = true, false, false, true, m.Recorder.resendCommit(i, has)
	if i < Seed {
		m.reports.byNumber[i].next = RecordedNext{}
	}
	if m.conclude(i); m.Addr(i) == "" || !m.at(i).up { // it is a member no more, or another one by now
		m.tend()
		return SetVerdict{Fault: SetRetired, Node: i, Shown: has.Config, As: has.Identity, Set: m.config}
	}
	switch n = m.at(i); {
	case i < Seed:
		m.bind(i)
	case m.config != nil:
		n.fault = SetRetired
	case has.Phase == SetAccepted:
		n.fault = SetPending
	default:
		n.fault = SetUnknown
	}
	m.tend()
	if invariant.On {
		m.check()
	}
	return m.Verdict(i)
}

// conclude draws the conclusions from what connection by has shown.
func (m *Membership) conclude(by int) {
	m.forget()
	for c := cmp.Or(m.found(), m.reports.newer()); c != nil; c = cmp.Or(m.found(), m.reports.newer()) {
		m.adopt(by, c)
	}
}

// Verdict returns what connection i counts as, by its latest judgement. If the
// list is wrong, every connection has the verdict of Wrong, whose Node is a node
// that shows the other set.
func (m *Membership) Verdict(i int) SetVerdict {
	if m.Addr(i) == "" {
		return SetVerdict{Fault: SetRetired, Node: i, Set: m.config}
	}
	if wrong := m.Wrong(); wrong.Fault != SetFits {
		return wrong
	}
	n := m.at(i)
	return SetVerdict{Fault: n.fault, Node: i, Shown: n.has.Config, As: n.has.Identity, Set: m.config,
		Asks: n.fault == SetLost && m.reports.confirmedByMajority(-1)}
}

// Up records that a connection is ready. The client may have learned of another
// configuration since the connection began.
func (m *Membership) Up(i int) {
	if r := m.Recorder.mine; r != nil && r.phase == SetCommit { // it has got the step of resendCommit
		r.keeps(m.at(i).has)
	}
	n := m.at(i)
	if n.ready = n.up; n.again {
		m.do(i, SetAction{Reconnect: true})
	} else if i < Seed && n.up && n.fault == SetFits {
		m.reports.remind()
	}
	m.tend()
}

// JudgeAgain has the connection to a node without a vote be judged again, as
// its JudgePause is over. A connection that this client's recording uses is
// judged again when the recording is over. Otherwise the recording would never
// be over where its three round trips take longer than a pause.
func (m *Membership) JudgeAgain(i int) {
	if r := &m.Recorder; !r.Recording() || !slices.Contains(r.mine.at, i) {
		m.Again(i)
	}
}

// Down records that the connection to node i has ended.
func (m *Membership) Down(i int) {
	n := m.at(i)
	n.up, n.ready = false, false
	m.tend()
}
