package nodeset

import "github.com/quorate/quorate/internal/protocol"

// This file owns whether enough members say what the set is, so that a blank
// server at a member's address gets its place back:
//
//	it is found blank ---> it keeps a word ---> q members are asked ---> it gets its place back
//	               SetLife                Told                  SetRestore
//
// Invariant: a majority that has moved to a later configuration never serves
// the one of before again. A node of it that loses its data gets its place back
// by the word of q members, and each of these says what it serves after that
// data was lost. One of them has moved (aim exchange regress).

// vouched reports whether the server at the address of member k, which is
// blank, may get its place back. If not, Out has what is to be done for that.
// Invariant: the server is in the same life of its data as when the members
// were asked. SetRestore names what the node keeps, and the word in that is
// another one in each life.
func (m *Membership) vouched(k int) bool {
	if !m.word(-1) {
		return false
	}
	n := &m.members[k]
	life := n.has.Life
	if n.has.Config != nil { // of before, or of a list that was not recorded
		life = n.has.Text
	}
	if life == "" && m.rules.On(protocol.RuleSetLife) {
		m.step(k, RecordStep{Kind: SetLife})
		return false
	}
	if n.life != life || n.since == 0 {
		n.life, n.since = life, m.asked+1
	}
	if m.word(k) {
		return true
	}
	m.question()
	return false
}

// question asks the members that decide what they keep, and what their
// registers say of what follows.
func (m *Membership) question() {
	m.asked++
	for _, member := range m.config.Members {
		n := &m.members[member.Number]
		if member.Role != Enters && !n.again && m.speaks(member.Number) {
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: member.Number}, Ask: m.asked})
		}
	}
}

// remind has what is open be looked at once more, as a member has been met that
// may say something of it.
func (m *Membership) remind() {
	asks := false
	for _, member := range m.config.Members {
		n := &m.members[member.Number]
		switch {
		case !n.up:
		case n.fault == SetAhead:
			asks = true
		case (n.fault == SetLost || n.fault == SetBetween) && n.since == 0:
			if m.word(-1) {
				m.Again(member.Number)
			}
		case n.fault == SetLost:
			asks = true
		}
	}
	if asks {
		m.question()
	}
}

// Kept says what a server answered when it was to keep a word. The members are
// asked at once, on the connections that there are. Its place comes with the
// next connection: that one shows whether it still keeps the word.
func (m *Membership) Kept(k int, has NodeSet) {
	if m.config.Numbered(k) == nil {
		return
	}
	switch n := &m.members[k]; {
	case !n.up || n.fault != SetLost || n.has.Config != nil:
	case has.Config != nil:
		m.Again(k) // another client has given it its place
	case has.Life != "" && m.word(-1):
		if n.has = has; m.vouched(k) {
			m.Again(k)
		}
	}
}

// Told says what member k keeps, as it was asked by the SetAction of that
// number.
func (m *Membership) Told(k int, ask uint32, has NodeSet, next RecordedNext) {
	member := m.config.Numbered(k)
	if member == nil {
		return
	}
	n := &m.members[k]
	if has.Identity != n.has.Identity || has.Stamp() != n.has.Stamp() || has.Phase != SetRecorded {
		m.Again(k) // it is another server, has lost its data, or has moved
	} else if next.Of == m.config.Stamp {
		n.next = next
		if has.Stamp() == m.config.Stamp && has.Identity == member.Identity {
			n.answered = max(n.answered, ask)
		}
	}
	if c := m.newer(); c != nil {
		m.adopt(-1, c)
		return
	}
	for _, o := range m.config.Members {
		if lost := &m.members[o.Number]; lost.fault == SetLost && lost.since > 0 && m.word(o.Number) {
			m.Again(o.Number)
		}
	}
}

// word reports whether a majority of the members that decide what follows say
// that the set is what the client counts on, since member k lost its data. They
// may have said so at any time if k is -1. Fewer are not enough: they may have
// missed a later configuration.
func (m *Membership) word(k int) bool {
	say := m.config.numbers(func(o *Member) bool {
		n := &m.members[o.Number]
		if !n.up || n.fault != SetFits || n.has.Stamp() != m.config.Stamp || n.has.Phase != SetRecorded {
			return false
		}
		return k < 0 || n.answered >= m.members[k].since || !m.rules.On(protocol.RuleSetSince)
	})
	return protocol.Most(m.config.Deciders(), say) || !m.rules.On(protocol.RuleSetWord)
}
