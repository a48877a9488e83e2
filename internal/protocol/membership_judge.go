package protocol

import "cmp"

// This file owns what a node of the list is to the set that the client counts
// on.

// judge finds out what node i is.
func (m *Membership) judge(i int) {
	n := &m.nodes[i]
	// The order matters. A node that has left may be a member by another name,
	// so it is looked at before it is left. A node that shows this
	// configuration is a member before it can be behind. What remains is a node
	// of no set, or of another one.
	switch {
	case m.config == nil && n.has.Phase == SetAccepted:
		n.fault = SetPending
	case m.config == nil:
	case m.retired(i) && m.alias(i):
	case m.retired(i):
		n.fault, n.known = SetRetired, false
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Cease: true})
	case n.has.Stamp() == m.config.Stamp && !n.has.Regains:
		m.member(i)
	case m.behind(i):
		m.move(i)
	default:
		m.nonMember(i)
	}
}

// member judges a node of the set.
func (m *Membership) member(i int) {
	n := &m.nodes[i]
	at := m.config.Member(n.has.Identity)
	if at < 0 {
		n.fault = SetWrong
		return
	}
	if j := m.copyOf(i); j >= 0 && m.rules.on(RuleSetCopy) {
		// One of the two has the other's data. The one that is where the member
		// was recorded is the member. Where neither address is the recorded
		// one, the first to be seen stays: it has given votes already, and
		// taking them away would lose holds for nothing.
		if m.config.Place(m.addrs[i]) == at && m.config.Place(m.addrs[j]) != at {
			m.nodes[j].place, m.nodes[j].known, m.nodes[j].again = -1, false, true // its connection may not be ready yet: see Up
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: j}, Reconnect: true})
		} else {
			n.fault, n.other = SetCopied, j
			return
		}
	}
	if j := m.another(i, at); j >= 0 {
		n.fault, n.other = SetAlias, j
		return
	}
	if m.astray(i, at) {
		n.fault = SetAstray
		return
	}
	if n.has.Phase == SetAccepted { // the client knows that all nodes have
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i, Kind: SetCommit, Identity: n.has.Identity, Config: m.config}})
	}
	// From here on its views let claims in (Outside). Nothing is asked of it
	// for that: its identity is in the configuration.
	n.known = true
	m.places(i, at)
}

// places notes that node i has been seen to be a member. If another number
// stood for that member, what that one is now is found out.
func (m *Membership) places(i, at int) {
	was := m.nodes[i].place
	m.nodes[i].place = at
	if was == at || m.config.Stamp.Epoch() == 1 {
		return
	}
	moved := was >= 0
	for j := range m.nodes {
		if o := &m.nodes[j]; j != i && o.place == at { // it has shown something else since, see another
			o.place, o.known, moved = -1, false, true
		}
	}
	if moved || m.addrs[i] != m.config.Members[at].Addr {
		m.regroup(i)
	}
}

// copyOf returns another address that shows the identity of node i and reaches
// another run of a server, -1 if there is none. Where runs are not known, both
// may be one server: that is for Incarnations to find out.
func (m *Membership) copyOf(i int) int {
	n := &m.nodes[i]
	for j := range m.nodes {
		o := &m.nodes[j]
		if j != i && o.up && o.fault == SetFits && o.has.Identity == n.has.Identity && o.has.Stamp() == n.has.Stamp() &&
			o.run != "" && n.run != "" && o.run != n.run {
			return j
		}
	}
	return -1
}

// another returns another number than i that is a member already, -1 if there
// is none. It stays so until that address shows something else: servers may
// change their addresses with each other. It matters where two numbers have one
// address: see slot.
//
// Invariant: a member at its own address has its vote. Without the rule A and B
// change their addresses and change back, and A crashes: B is refused at its
// own address until A comes back, and of three nodes one is used (RuleSetHome).
func (m *Membership) another(i, at int) int {
	if m.config.Stamp.Epoch() == 1 || m.nodes[i].place == at || !m.rules.on(RuleSetNumber) {
		return -1
	}
	own := m.config.Members[at].Addr
	for j := range m.nodes {
		n := &m.nodes[j]
		// A member that shows itself at its own address is not at another one,
		// where no server answers.
		back := !n.up && !m.movedAway(j) && m.addrs[i] == own && m.addrs[j] != own && m.rules.on(RuleSetHome)
		if n.place == at && !back && (n.has.Config == nil || m.config.Member(n.has.Identity) == at) {
			return j
		}
	}
	return -1
}

// astray reports whether node i, which shows a member, is at the address that
// the set records for another member, so that it may have a copy of the data.
// It is the member once the member's own address has shown another one, or once
// the member whose address it has was seen elsewhere: servers may have changed
// their addresses with each other. An address that is no member's is another
// name of a member.
//
// Invariant: a copy of a member's data at another member's address is not used
// where the member itself may be. Without the rule a client that does not reach
// C, and reaches a copy of it at A's address, holds by the copy and B, while
// another client holds by A and C.
func (m *Membership) astray(i, at int) bool {
	home := m.config.Place(m.addrs[i])
	// An address of a member of before is no other name of a member either: a
	// server that has left may have a copy.
	former := home < 0 && m.config.left(m.addrs[i])
	if home < 0 && !former || home == at || m.nodes[i].place == at || !m.rules.on(RuleSetAstray) {
		return false
	}
	for j := range m.nodes {
		o := &m.nodes[j]
		if j == i || o.has.Config == nil {
			continue
		}
		// Up does not matter for the first: a node that is refused is connected
		// for a moment only.
		shows := m.config.Member(o.has.Identity) // a node that is no member may have left, and the member come back there
		left := m.addrs[j] == m.config.Members[at].Addr && shows >= 0 && shows != at
		if left || home >= 0 && o.up && o.fault == SetFits && o.has.Identity == m.config.Members[home].Identity {
			return len(m.nodes) >= maxNodes // the other member needs a number of its own
		}
	}
	return true
}

// nonMember judges a node that has no configuration, or another one.
//
// Invariant: a node that has recorded another set stays with that. Without the
// rule the client of ABC makes C, which is a member of CDE with an earlier
// ballot, one of its own, and the clients of CDE that are connected lose a
// member.
func (m *Membership) nonMember(i int) {
	if n := &m.nodes[i]; n.has.Config == nil && m.aliased() || n.has.Regains && m.config.Kin(n.has.Config) {
		m.lost(i, SetLost)
	} else if n.has.Config != nil && m.config.Kin(n.has.Config) && m.ofAnother(i) {
		if n.fault = SetAstray; n.place >= 0 && m.config.Stamp.Epoch() > 1 && m.config.Members[n.place].Identity != n.has.Identity {
			n.place = -1 // the member is at its own address again, as far as is known
			m.regroup(i)
		}
	} else if n.has.Config == nil || n.has.Stamp().Compare(m.Stamp()) < 0 && (n.has.Phase == SetAccepted || m.config.Kin(n.has.Config) || !m.rules.on(RuleSetKin)) {
		m.lost(i, SetWrong)
	} else if n.place >= 0 {
		n.fault = SetElsewhere
	} else {
		n.fault = SetWrong
	}
}

// ofAnother reports whether the data of node i, by its own word, are those of
// another member than the one at this address.
//
// Invariant: a copy of a member's data does not become the member at whose
// address it is. Without the rule C was to be replaced by D, that was given up,
// and a client that reaches a copy of D at A's address has it become A: two
// nodes with A's identity.
func (m *Membership) ofAnother(i int) bool {
	has := &m.nodes[i].has
	if !m.rules.on(RuleSetAstray) {
		return false
	}
	// The servers of two addresses have changed back: where this client has
	// seen a member is a server that has left.
	if k := m.nodes[i].place; k >= 0 && m.config.Members[k].Addr != m.addrs[i] && m.config.Members[k].Identity != has.Identity {
		return true
	}
	own := has.Config.Member(has.Identity)
	if own >= 0 && m.config.Member(has.Identity) < 0 && has.Config.Members[own].Addr != m.addrs[i] { // it left from another address
		return true
	}
	at := has.Config.Place(m.addrs[i])
	return at >= 0 && at != own
}

// aliased reports whether this client reaches some member by another address
// than the set records. Then an empty node at an address that the set does not
// record may be a member that lost its data. It is outside, like any node that
// is not known to be a member, so it has no vote, and the others are used.
//
// Invariant: no member's loss of data stops a client that knows the members by
// other names. Without that a process that starts meanwhile is refused until
// another process gives the node its place back.
func (m *Membership) aliased() bool {
	for i := range m.nodes {
		if n := &m.nodes[i]; n.known && n.up && m.config.Place(m.addrs[i]) != m.config.Member(n.has.Identity) {
			return true
		}
	}
	return false
}

// lost judges a node whose data is not that of the member that it may have
// been. It gets back what it was, if it is known which member that was and
// enough others can say so; its guard time begins.
//
// Invariant: a node becomes a member only at the place where that member was.
// Without the rule a client with the list ABD makes D the member that C is, and
// its majority BD has no node in common with AC.
func (m *Membership) lost(i int, or SetFault) {
	n := &m.nodes[i]
	// The place where this client has seen the member comes first: a member
	// that has moved, and lost its data at its new address, is found there and
	// not where it was recorded. But where another member is recorded it may be
	// that one, and the member that was seen may be at its own address again:
	// servers may change their addresses with each other. Both are looked for
	// where they are recorded, unless that other one was seen elsewhere.
	// Without that D's server becomes A.
	//
	// So it is at the address of a member of before, unless a newer list names
	// that one.
	at, home := n.place, m.config.Place(m.addrs[i])
	back := home >= 0 && home != at && !m.occupied(i, home) || home < 0 && (i >= m.listed || m.config.left(m.addrs[i])) && !n.named
	if at < 0 {
		at = home
	} else if back && m.rules.on(RuleSetAstray) {
		for j := range m.nodes { // both have changed back
			if o := &m.nodes[j]; j == i || home >= 0 && o.place == home {
				o.place, o.known = -1, false
			}
		}
		if m.config.Stamp.Epoch() > 1 {
			m.regroup(i)
		}
		if n, at = &m.nodes[i], home; at < 0 { // there may be more nodes now
			n.fault = cmp.Or(n.fault, or)
			return
		}
	}
	if !m.rules.on(RuleSetPlace) && at < 0 {
		at = m.free(i)
	}
	if m.doubtful(i, at) {
		n.fault = SetLost
		return
	}
	if n.fault = or; at < 0 || m.occupied(i, at) {
		return
	}
	if !m.vouched(i) {
		n.fault = SetLost
		return
	}
	n.place, n.fault, n.known = at, SetFits, true
	// Seen is what the node keeps now. The step is refused if that has changed
	// meanwhile, so two clients that restore one node begin one incarnation of
	// it, and not two.
	m.Out = append(m.Out, SetAction{RecordStep: RecordStep{
		Node: i, Kind: SetRestore, Identity: m.config.Members[at].Identity, Config: m.config, Seen: n.has.Text,
	}})
	n.has = NodeSet{Phase: SetRecorded, Identity: m.config.Members[at].Identity, Config: m.config}
	m.shows(i, n.has.Identity)
}

// doubtful reports whether an empty server at the address of a member may be
// another one: the one that this client has seen there last, and does not reach
// anywhere else.
//
// Invariant: the empty server becomes neither of the two before one of them was
// seen elsewhere. Without that it becomes D, as it is at D's address, while it
// was A and D is at A's: two servers are D, and a majority of each has no node
// in common once A has left.
func (m *Membership) doubtful(i, at int) bool {
	seen := m.config.Member(m.nodes[i].shown)
	return at >= 0 && seen >= 0 && seen != at && !m.occupied(i, seen) && m.rules.on(RuleSetAstray)
}

// free returns a member that no address is known to be.
func (m *Membership) free(i int) int {
	for at := range m.config.Members {
		if !m.occupied(i, at) {
			return at
		}
	}
	return -1
}

// occupied reports whether another address is that member.
func (m *Membership) occupied(i, at int) bool {
	for j := range m.nodes {
		o := &m.nodes[j]
		if j != i && o.up && o.fault == SetFits && o.has.Stamp() == m.config.Stamp && o.has.Identity == m.config.Members[at].Identity {
			return true
		}
	}
	return false
}
