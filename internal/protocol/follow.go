package protocol

import (
	"math/bits"
	"slices"
)

// This file owns how a client follows its set from one configuration to the next.
//
// Invariant: a client counts on a later configuration only if a member of the one that it counts on shows it. So
// it is a later one of the same set. A node says that a configuration is recorded only if it was decided.

// follows reports whether what a node has shown is a later configuration of the set that the client counts on.
func (m *Membership) follows(has NodeSet) bool {
	if m.config == nil || has.Config.Stamp.Epoch() <= m.config.Stamp.Epoch() {
		return false
	}
	return m.config.Member(has.Identity) >= 0 || !m.rules.on(RuleSetFollow)
}

// follow has the client count on a later configuration of its set. Nodes that stay are known to be members.
func (m *Membership) follow(by int, c *Configuration) {
	was := m.config
	m.config, m.narrow = c, m.narrow || !c.widens(was)
	for j := range m.nodes {
		n := &m.nodes[j]
		if n.place >= 0 {
			n.place = c.Member(was.Members[n.place].Identity)
		}
		if n.place < 0 {
			n.known = false
		}
	}
	m.regroup(by)
}

// Decide says that a configuration follows which the client counts on: this client has decided it, or read that it
// was decided.
func (m *Membership) Decide(c *Configuration) {
	if m.config != nil && c.Stamp.Epoch() > m.config.Stamp.Epoch() {
		m.follow(-1, c)
	}
}

// regroup finds out which nodes are members, and has them be judged again.
func (m *Membership) regroup(by int) {
	for k := range m.config.Members {
		m.slot(k)
	}
	m.reconnect(by)
	for j := range m.nodes {
		if n := &m.nodes[j]; m.retired(j) {
			n.fault, n.known = SetRetired, false
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: j}, Cease: true})
		} else {
			if n.fault == SetRetired {
				n.fault = SetFits
			}
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: j}, Begin: true})
		}
	}
}

// widens reports whether each quorum of a configuration has one of the configuration o that it follows directly.
func (c *Configuration) widens(o *Configuration) bool {
	if c.Stamp.Epoch() != o.Stamp.Epoch()+1 {
		return false
	}
	for _, m := range o.Members { // it is not if an exchange has been finished
		if m.Role != Enters && c.Member(m.Identity) < 0 {
			return false
		}
		if m.Role == Enters && c.Stage == Stable && c.Member(m.Identity) >= 0 {
			return false
		}
	}
	return true
}

// slot returns which node a member is, and makes one if none is.
func (m *Membership) slot(member int) int {
	for j := range m.nodes {
		if m.nodes[j].place == member {
			return j
		}
	}
	addr := m.config.Members[member].Addr
	if j := slices.Index(m.addrs, addr); j >= 0 {
		return j
	}
	m.addrs = append(m.addrs, addr)
	m.nodes = append(m.nodes, setNode{place: -1})
	return len(m.nodes) - 1
}

// Member returns which member a node is, -1 if it is none.
func (m *Membership) Member(node int) int {
	if m.config == nil {
		return -1
	}
	for k := range m.config.Members {
		if m.slot(k) == node {
			return k
		}
	}
	return -1
}

// Know says that a node beside those of the list has an address.
func (m *Membership) Know(addr string) {
	m.addrs = append(m.addrs, addr)
	m.nodes = append(m.nodes, setNode{place: -1})
}

// Addr returns the address of a node.
func (m *Membership) Addr(node int) string { return m.addrs[node] }

// Group returns which nodes the client asks, and which of them make a quorum. It says Narrow once.
func (m *Membership) Group() Group {
	if m.config == nil || m.config.Stamp.Epoch() == 1 {
		m.known = max(m.known, m.listed)
		return Group{Nodes: m.known, Sets: Majority(m.listed), Deciders: Majority(m.listed), Absent: ^uint32(0) << m.listed & (1<<m.known - 1)}
	}
	asked := uint32(0)
	g := Group{Sets: m.config.Quorums(m.slot, m.rules), Narrow: m.narrow}
	deciders := uint32(0)
	for k, member := range m.config.Members {
		asked |= 1 << m.slot(k)
		if member.Role != Enters {
			deciders |= 1 << m.slot(k)
		}
	}
	g.Deciders = Quorums{present: deciders}
	m.known = max(m.known, m.listed, bits.Len32(asked))
	m.narrow, g.Nodes, g.Absent = false, m.known, ^asked&(1<<m.known-1)
	return g
}

// retired reports whether a node is no member of the set any more, or not yet.
func (m *Membership) retired(i int) bool { return m.config.Stamp.Epoch() > 1 && m.Member(i) < 0 }

// notFormer returns a node of the client's list that is no member of the set, and was none, -1 if there is none.
func (m *Membership) notFormer() int {
	for i := range m.listed {
		n := &m.nodes[i]
		if m.Member(i) < 0 && !slices.Contains(m.config.Former, m.addrs[i]) && n.met && n.place < 0 && m.config.Member(n.has.Identity) < 0 {
			return i
		}
	}
	return -1
}

// behind reports whether a node serves an earlier configuration of the set, and is a member of this one.
func (m *Membership) behind(i int) bool {
	n := &m.nodes[i]
	return n.has.Config != nil && n.has.Config.Stamp.Epoch() < m.config.Stamp.Epoch() && m.config.Member(n.has.Identity) >= 0
}

// move has a member serve the configuration that the client counts on. It keeps what it has.
func (m *Membership) move(i int) {
	n := &m.nodes[i]
	n.has.Config, n.has.Phase = m.config, SetRecorded
	if m.member(i); n.fault == SetFits {
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i, Kind: SetMove, Identity: n.has.Identity, Config: m.config}})
	}
}

// decided reports whether enough members say what the set is: a majority of those that decide which configuration
// follows, or all of them that have not lost their data, if each is connected. So a majority of them has moved to
// no later one.
func (m *Membership) decided() bool {
	say, blank, deciders := uint32(0), uint32(0), uint32(0)
	for k, member := range m.config.Members {
		j := m.slot(k)
		if member.Role != Enters {
			deciders |= 1 << j
		}
		if n := &m.nodes[j]; n.up && n.fault == SetFits && n.has.Stamp() == m.config.Stamp && n.has.Phase == SetRecorded {
			say |= 1 << j
		} else if n.up && n.has.Config == nil {
			blank |= 1 << j
		}
	}
	return most(deciders, say) || say&deciders != 0 && deciders&^(say|blank) == 0 || !m.rules.on(RuleSetWord)
}
