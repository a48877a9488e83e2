package protocol

// This file owns when a set comes back that most of its nodes have forgotten. Recording owns how.

// Regains reports whether Regain returns a Recording.
func (m *Membership) Regains() bool { return m.Regain("") != nil }

// Regain returns the Recording by which the nodes that lost their data get the set back, nil if none is due. One is due if q
// members cannot say any more what the set is, but all of them are connected, and each says it or has lost its data.
//
// Invariant: while nodes are being exchanged none is due. A majority of the nodes that decide what follows may have lost that decision
// too. What the others say of the stage may be over then, and a second decision would give the set two successors.
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
		if j < 0 || !m.nodes[j].up || m.nodes[j].again {
			return nil
		}
		switch at[k] = j; m.nodes[j].fault {
		case SetFits:
		case SetLost:
			lost = true
		default:
			return nil
		}
	}
	if !lost || m.word() {
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

// Again has a node be judged again. A connection that is not ready yet cannot be ended: Up does it then.
func (m *Membership) Again(i int) {
	if n := &m.nodes[i]; n.up && !n.again {
		n.again = true
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Reconnect: true})
	}
}

// resume is Regain for a client that counts on no set. No node says any more that the set is recorded, but some have accepted to regain it.
func (m *Membership) resume(b Ballot) *Recording {
	begun := false
	list := &Configuration{}
	for i := range m.listed {
		n := &m.nodes[i]
		regains := n.fault == SetPending && n.has.Regains
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
	for j, a := range m.addrs {
		if a == m.config.Members[member].Addr {
			return j
		}
	}
	return -1
}
