package nodeset

// This file owns what happens at a connection: it reaches a server, is ready,
// and is gone; and what the connection counts as then.

// Met says that a connection has reached a server, and what that keeps. It
// returns what the connection counts as. Out may have a step for the node,
// which it gets before anything else.
func (m *Membership) Met(i int, has NodeSet) SetVerdict {
	if m.Addr(i) == "" { // it is none any more
		return SetVerdict{Fault: SetRetired, Node: i}
	}
	n := m.at(i)
	n.up, n.again, n.met, n.has, n.next = true, false, true, m.committed(i, has), RecordedNext{}
	if m.conclude(i); m.Addr(i) == "" || !m.at(i).up { // it is a member no more, or another one by now
		m.tend()
		return SetVerdict{Fault: SetRetired, Node: i, Shown: has.Config, As: has.Identity, Set: m.config}
	}
	n = m.at(i)
	if i >= Seed && m.config == nil {
		n.fault = SetUnknown
		if has.Phase == SetAccepted {
			n.fault = SetPending
		}
	} else if i >= Seed {
		n.fault = SetRetired
	} else {
		m.bind(i)
	}
	m.tend()
	return m.Verdict(i)
}

// conclude draws what follows from what connection by has shown.
func (m *Membership) conclude(by int) {
	m.forget()
	for {
		c := m.found()
		if c == nil {
			c = m.newer()
		}
		if c == nil {
			return
		}
		m.adopt(by, c)
	}
}

func (m *Membership) Verdict(i int) SetVerdict {
	if m.Addr(i) == "" {
		return SetVerdict{Fault: SetRetired, Node: i, Set: m.config}
	}
	n := m.at(i)
	v := SetVerdict{Fault: n.fault, Node: i, Shown: n.has.Config, As: n.has.Identity, Set: m.config}
	if wrong := m.Wrong(); wrong.Fault != SetFits {
		return wrong
	}
	if n.fault == SetLost {
		v.Asks = m.word(-1)
	}
	return v
}

// Up says that a connection is ready. The client may have learnt of another
// configuration since it began.
func (m *Membership) Up(i int) {
	if m.Addr(i) == "" {
		return
	}
	if m.mine != nil && m.mine.phase == SetCommit { // it has got the step of committed
		m.mine.keeps(m.at(i).has)
	}
	if n := m.at(i); n.again {
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Reconnect: true})
	} else if i < Seed && n.up && n.fault == SetFits {
		m.remind()
	}
	m.tend()
}

func (m *Membership) Down(i int) {
	if m.Addr(i) == "" {
		return
	}
	m.at(i).up = false
	if m.config != nil {
		m.tend()
	}
}
