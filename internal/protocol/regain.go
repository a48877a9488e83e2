package protocol

// This file owns when a set comes back that most of its nodes have forgotten.
// Recording owns how.

// Regains reports whether Regain returns a Recording.
func (m *Membership) Regains() bool { return m.Regain("") != nil }

// Regain returns the Recording by which the nodes that lost their data get the
// set back, nil if none is due. One is due if q members cannot say any more
// what the set is, but all of them are connected, and each says it or has lost
// its data.
//
// Invariant: while nodes are being exchanged none is due. A majority of the
// nodes that decide what follows may have lost that decision too. What the
// others say of the stage may be over then, and a second decision would give
// the set two successors.
func (m *Membership) Regain(b Ballot) *Recording {
	switch {
	case m.wrong() >= 0:
		return nil
	case m.config == nil:
		return m.resume(b)
	case m.config.Stage != Stable:
		return nil
	}
	at := make([]int, len(m.config.Members))
	lost := false
	for k := range at {
		j := m.nodeOf(k)
		// Each member has to be connected, and judged on this connection. One
		// that is away may know a later configuration, and the set would have
		// two successors of one epoch. One that is about to be judged again may
		// have lost its data since.
		if j < 0 || !m.nodes[j].up || m.nodes[j].again {
			return nil
		}
		// SetFits: it says the set. SetLost: it is empty, at this member's
		// place. Any other fault means that the list is not that of the set, or
		// that a node has become part of another one: an operator has to look.
		switch at[k] = j; m.nodes[j].fault {
		case SetFits:
		case SetLost:
			lost = true
		default:
			return nil
		}
	}
	// Where q members say the set, each empty node gets its place back by their
	// word alone (rule 7), without all the others.
	if !lost || m.word(-1) {
		return nil
	}
	return newRegaining(m.config, at, b, m.rules)
}

// Rejudge has the nodes without a vote be judged again that may have one now.
func (m *Membership) Rejudge() {
	for i := range m.nodes {
		if n := &m.nodes[i]; n.fault == SetLost || n.fault == SetPending {
			m.Again(i)
		}
	}
}

// Again has a node be judged again. A connection that is not ready yet cannot
// be ended: Up does it then.
func (m *Membership) Again(i int) {
	if n := &m.nodes[i]; n.up && !n.again {
		n.again = true
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Reconnect: true})
	}
}

// resume is Regain for a client that counts on no set. No node says any more
// that the set is recorded, but some have accepted to regain it.
func (m *Membership) resume(b Ballot) *Recording {
	begun := false
	list := &Configuration{}
	for i := range m.listed {
		n := &m.nodes[i]
		regains := n.fault == SetPending && n.has.Regains
		// All nodes of the list are needed here as well. With one away it is
		// unknown whether the list is the set's.
		if begun = begun || regains; !n.up || n.again || n.fault != SetFits && !regains {
			return nil
		}
		list.Members = append(list.Members, Member{Addr: m.addrs[i]})
	}
	if !begun {
		return nil
	}
	return newRegaining(list, nil, b, m.rules)
}

// nodeOf returns which node a member is, -1 if that is not known.
func (m *Membership) nodeOf(member int) int {
	for j := range m.nodes {
		if m.nodes[j].place == member {
			return j
		}
	}
	// A member that no node has shown itself to be is looked for at the address
	// that was recorded. A client with other names for its nodes finds none
	// there, and leaves the regaining to one that has the set's names.
	for j, a := range m.addrs {
		if a == m.config.Members[member].Addr {
			return j
		}
	}
	return -1
}
