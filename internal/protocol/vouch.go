package protocol

// This file owns whether enough members say what the set is, so that a node
// that lost its data gets its place back:
//
//	it is found without its data ---> it keeps a word ---> q members are asked ---> it gets its place back
//	                         SetLife                   Told                 SetRestore
//
// Invariant: a majority that has moved to a later configuration never serves
// the one of before again. A node of it that loses its data gets its place back
// by the word of q members, and each of these says what it serves after that
// data was lost. One of them has moved. Without the rule C is replaced by D
// while a client sleeps, and A loses its data. The client wakes, parted from B
// and D, and takes what B said before for its word: A is a member of ABC again.
// The client holds by A and C, and another one by B and D (trace
// exchange-stale-word).

// vouched reports whether node i, which lost its data, may get its place back.
// If not, Out has what is to be done for that.
//
// Invariant: the node is in the same life of its data as when the members were
// asked. SetRestore names what the node keeps, and the word in that is another
// one in each life. Without the word a node that loses its data once more gets
// back a place that the members have left meanwhile.
func (m *Membership) vouched(i int) bool {
	if !m.word(-1) {
		return false
	}
	n := &m.nodes[i]
	life := n.has.Life
	if n.has.Config != nil { // of before, or of a list that was not recorded
		life = n.has.Text
	}
	if life == "" && m.rules.on(RuleSetLife) {
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i, Kind: SetLife}})
		return false
	}
	if n.life != life || n.since == 0 {
		n.life, n.since = life, m.asked+1
	}
	if m.word(i) {
		return true
	}
	m.asked++
	for j := range m.nodes {
		if m.says(j, -1) && !m.says(j, i) {
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: j}, Ask: m.asked})
		}
	}
	return false
}

// Kept says what node i answered when it was to keep a word. The members are
// asked at once, on the connections that there are. Without that the node is
// connected to once more for that alone, after a pause. Its place comes with
// the next connection in any case: that one shows whether the node still keeps
// the word.
func (m *Membership) Kept(i int, has NodeSet) {
	switch n := &m.nodes[i]; {
	case m.config == nil || !n.up || n.fault != SetLost || n.has.Config != nil:
	case has.Config != nil:
		m.Again(i) // another client has given it its place
	case has.Life != "" && m.word(-1):
		if n.has = has; m.vouched(i) {
			m.Again(i)
		}
	}
}

// Told says what node i keeps, as it was asked by the SetAction of that number.
func (m *Membership) Told(i int, ask uint32, has NodeSet) {
	n := &m.nodes[i]
	if m.config == nil || n.fault != SetFits || has.Identity != n.has.Identity || has.Stamp() != m.config.Stamp {
		m.Again(i) // it is another member, has lost its data, or has moved on
		return
	}
	n.answered, n.answeredAs = max(n.answered, ask), has.Stamp()
	for j := range m.nodes {
		if o := &m.nodes[j]; o.fault == SetLost && o.since > 0 && m.word(j) {
			m.Again(j)
		}
	}
}

// says reports whether node j says that the set is what the client counts on,
// and has said so since node i lost its data. It may have said so at any time
// if i is -1.
func (m *Membership) says(j, i int) bool {
	n := &m.nodes[j]
	if !n.up || n.fault != SetFits || n.has.Stamp() != m.config.Stamp {
		return false
	}
	return i < 0 || n.answered >= m.nodes[i].since && n.answeredAs == m.config.Stamp || !m.rules.on(RuleSetSince)
}

// word reports whether q members say what the set is, since node i lost its
// data: see says. Fewer are not enough: they may have missed a later set, and
// Regain needs all nodes.
func (m *Membership) word(i int) bool {
	if m.config.Stamp.Epoch() > 1 {
		return m.decided(i)
	}
	say, blank := 0, 0
	for j := range m.nodes {
		switch n := &m.nodes[j]; {
		case m.says(j, i):
			say++
		case n.up && n.has.Config == nil:
			blank++
		}
	}
	return say >= m.listed/2+1 || say > 0 && say+blank == m.listed && !m.rules.on(RuleSetRegain) || !m.rules.on(RuleSetWord)
}

// decided is word where nodes were exchanged: a majority of the members must
// say so that decide which configuration follows. So a majority of them has
// moved to no later one.
func (m *Membership) decided(i int) bool {
	say, blank, deciders := uint32(0), uint32(0), m.deciders()
	for k := range m.config.Members {
		j := m.slot(k)
		if n := &m.nodes[j]; n.has.Phase == SetRecorded && m.says(j, i) {
			say |= 1 << j
		} else if n.up && n.has.Config == nil {
			blank |= 1 << j
		}
	}
	return most(deciders, say) || say&deciders != 0 && deciders&^(say|blank) == 0 && !m.rules.on(RuleSetRegain) || !m.rules.on(RuleSetWord)
}
