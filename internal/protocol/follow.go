package protocol

import (
	"math/bits"
	"slices"
)

// This file owns how a client follows its set from one configuration to the
// next.
//
// Invariant: a client counts on a later configuration only if it is one of the
// same set. A node says that a configuration is recorded only if it was
// decided, and what follows each one was decided once. So it is the one that
// the client would come to by those in between, also if no member of the
// present one is left that shows the way.

// follows reports whether what a node has shown is a later configuration of the
// set that the client counts on.
//
// Invariant: a configuration of an exchange that goes on is shown by a member
// of the present one. Most nodes of that may have lost their data since, and
// have been given it back without what followed: then a node that was to enter
// may be the only one that shows it.
func (m *Membership) follows(has NodeSet) bool {
	if m.config == nil || has.Config.Stamp.Epoch() <= m.config.Stamp.Epoch() {
		return false
	}
	return m.config.Member(has.Identity) >= 0 || has.Config.Stage == Stable && m.config.Kin(has.Config) || !m.rules.on(RuleSetFollow)
}

// follow has the client count on a later configuration of its set. Nodes that
// stay are known to be members.
//
// Invariant: an address that was another name of a member is none once the set
// records it for another one. Without that D replaces C while D's server has a
// copy of A's data of before. A client whose list has D meets the copy first,
// takes D's address for a name of A, and has it go on as A beside A.
func (m *Membership) follow(by int, c *Configuration) {
	was := m.config
	m.config, m.restartJoining = c, m.restartJoining || !c.widens(was)
	for j := range m.nodes {
		n := &m.nodes[j]
		if n.place >= 0 {
			n.place = c.Member(was.Members[n.place].Identity)
			if !was.names(m.addrs[j]) && c.names(m.addrs[j]) && c.Place(m.addrs[j]) != n.place && m.rules.on(RuleSetAstray) {
				n.place = -1
			}
		}
		if n.place < 0 {
			n.known = false
		}
	}
	m.regroup(by)
}

// left reports whether an address is that of a member of before.
func (c *Configuration) left(addr string) bool { return slices.Contains(c.Former, addr) }

// names reports whether an address is that of a member, or of a member of
// before.
func (c *Configuration) names(addr string) bool {
	return c.Place(addr) >= 0 || c.left(addr)
}

// Decide says that a configuration follows which the client counts on: this
// client has decided it, or read that it was decided. It reports whether the
// client counts on that configuration or a later one.
func (m *Membership) Decide(c *Configuration) bool {
	switch {
	case m.config == nil:
		return false
	case c.Stamp.Epoch() > m.config.Stamp.Epoch():
		if !m.room(c) {
			return false
		}
		m.follow(-1, c)
	}
	return true
}

// room reports whether the client has a number for each member of a
// configuration.
//
// Invariant: each member has a bit of its own. Without the rule a client that
// has seen 30 replacements of a node counts a majority of two nodes of three,
// and after 31 a majority of one.
func (m *Membership) room(c *Configuration) bool { return m.Room(c) >= 0 || !m.rules.on(RuleSetRoom) }

// Room returns how many numbers are left when each member of a configuration
// has one. It is negative if they are too few.
func (m *Membership) Room(c *Configuration) int {
	left := maxNodes - len(m.nodes)
	for k := range c.Members {
		if !m.numbered(c, k) {
			left--
		}
	}
	return left
}

// numbered reports whether slot finds a node that is a member of c, once the
// client counts on c.
func (m *Membership) numbered(c *Configuration, member int) bool {
	for j, addr := range m.addrs {
		place := -1
		if at := m.nodes[j].place; at >= 0 {
			place = c.Member(m.config.Members[at].Identity)
		}
		if place == member || place < 0 && addr == c.Members[member].Addr {
			return true
		}
	}
	return false
}

// regroup finds out which nodes are members, and has them be judged again.
func (m *Membership) regroup(by int) {
	for j := range m.nodes {
		// The connection of a node that was refused has ended. What it has
		// shown says where the member may be found.
		if n := &m.nodes[j]; (n.up || n.fault == SetAstray || n.fault == SetAlias) && n.place < 0 && n.has.Config != nil {
			if k := m.config.Member(n.has.Identity); k >= 0 && !m.seen(k) && !m.astray(j, k) {
				n.place = k
			}
		}
	}
	for k := range m.config.Members {
		m.slot(k)
	}
	m.reconnect(by)
	for j := range m.nodes {
		if n := &m.nodes[j]; m.unmet(j) { // it may be a member under another name
			continue
		} else if m.retired(j) {
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

// seen reports whether some node has shown that it is a member.
func (m *Membership) seen(member int) bool {
	return slices.ContainsFunc(m.nodes, func(n setNode) bool { return n.place == member })
}

// unmet reports whether a node of the list is no member by its address, and may
// be one by what it will show.
func (m *Membership) unmet(i int) bool {
	return i < m.listed && m.Member(i) < 0 && !m.nodes[i].met && !m.config.left(m.addrs[i])
}

// Same says that node i reaches the server that another node has reached
// before, and which run of it that is.
//
// Invariant: an address leads to one server. If the other number stands for the
// member that this server is, that member is not the one for which number i
// stands. Without that the servers of two addresses change back, and the number
// that stands for C by the address of B is refused as long as B has a
// connection: C is asked by no number.
func (m *Membership) Same(i, other int, run string) {
	if !m.exchanged() {
		return
	}
	n, o := &m.nodes[i], &m.nodes[other]
	switch {
	case m.unmet(i) && m.Member(other) >= 0:
		n.fault, n.other = SetAlias, other
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Cease: true})
	case n.place >= 0 && o.place >= 0 && o.up && o.known && o.run == run && run != "":
		// What the number has shown is over. Else regroup takes it for C again
		// by that, and each try at its address has all nodes be connected to
		// again, without end.
		n.place, n.known, n.fault, n.up, n.has = -1, false, SetFits, false, NodeSet{}
		m.regroup(other)
	}
}

// alias has a node of the list be the member that it shows itself to be, where
// the set records another address than the list. If the client uses that
// address already, it goes on with it. It returns false for a node that is no
// member.
//
// Invariant: a member has one number, so one vote, by whatever addresses the
// client reaches it. Without the rule a client that names its nodes otherwise
// than the set connects to each of them twice.
func (m *Membership) alias(i int) bool {
	awaited := m.awaited(i)
	n := &m.nodes[i]
	if awaited >= 0 && n.has.Config != nil && m.config.Member(n.has.Identity) == awaited {
		o := &m.nodes[m.slot(awaited)]
		o.place, o.known = -1, false
		n.place, n.fault = awaited, SetFits
		m.regroup(i)
		return false
	}
	if i >= m.listed || n.has.Config == nil || m.config.left(m.addrs[i]) {
		return false
	}
	k := m.config.Member(n.has.Identity)
	if k < 0 {
		return false
	}
	j := m.slot(k)
	if m.config.Place(m.addrs[i]) == k && m.movedAway(j) {
		return false
	}
	o := &m.nodes[j]
	if o.up && o.fault == SetFits {
		n.fault, n.known, n.other = SetAlias, false, j
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Cease: true})
		return true
	}
	o.place, o.known, o.fault = -1, false, SetRetired
	n.place, n.fault = k, SetFits // it may have been taken for one that has left
	m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: j}, Cease: true}, SetAction{RecordStep: RecordStep{Node: i}, Begin: true})
	c := *m.config // what counts on it learns which nodes these are now
	m.config = &c
	return false
}

// widens reports whether each quorum of a configuration has one of the
// configuration o that it follows directly.
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

// slot returns which node a member is, and makes one if none is. Two nodes may
// have one address, if the server there is another member than the one that is
// recorded there.
//
// Invariant: no two members have one number (RuleSetNumber). Without the rule C
// is replaced by D, and a client that reaches D, or a copy of its data, at A's
// address counts its vote as that of A and of D.
func (m *Membership) slot(member int) int {
	for j := range m.nodes {
		if m.nodes[j].place == member {
			return j
		}
	}
	addr := m.config.Members[member].Addr
	for j, a := range m.addrs {
		if a == addr && (m.nodes[j].place < 0 || !m.rules.on(RuleSetNumber)) {
			return j
		}
	}
	m.addrs = append(m.addrs, addr)
	m.nodes = append(m.nodes, setNode{place: -1})
	return len(m.nodes) - 1
}

// Node returns which node a member is.
func (m *Membership) Node(member int) int { return m.slot(member) }

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

// Group returns which nodes the client asks, and which of them make a quorum.
// It says RestartJoining once.
func (m *Membership) Group() Group {
	if !m.exchanged() {
		m.known = max(m.known, m.listed)
		g := Group{Nodes: m.known, Sets: Majority(m.listed), Deciders: Majority(m.listed), Absent: ^uint32(0) << m.listed & (1<<m.known - 1)}
		if m.config != nil {
			g.Successor = SuccessorName(m.config.Stamp)
		}
		return g
	}
	asked := uint32(0)
	g := Group{Sets: m.config.Quorums(m.slot, m.rules), Successor: SuccessorName(m.config.Stamp), RestartJoining: m.restartJoining}
	if m.config.Stage == Learning {
		g.TakeBack = WindowOf(m.config.Guard)
	}
	for k := range m.config.Members {
		asked |= 1 << m.slot(k)
	}
	g.Deciders = Quorums{present: m.deciders()}
	m.known = max(m.known, m.listed, bits.Len32(asked))
	m.restartJoining, g.Nodes, g.Absent = false, m.known, ^asked&(1<<m.known-1)
	return g
}

// deciders are the nodes whose majority decides which configuration follows:
// those that stay or leave.
func (m *Membership) deciders() (nodes uint32) {
	for k, member := range m.config.Members {
		if member.Role != Enters {
			nodes |= 1 << m.slot(k)
		}
	}
	return nodes
}

// Wants reports whether a node is to be connected to.
func (m *Membership) Wants(i int) bool {
	return !m.retired(i) || m.unmet(i) && m.nodes[i].fault != SetAlias || m.awaited(i) >= 0 || m.alone(i)
}

// alone reports whether the client reaches no quorum, and node i is one of its
// list that is no member as far as is known, so that it may be one by now.
//
// Invariant: a client without a quorum asks each node of its list. Without that
// the set becomes B alone, and then B and A once more while the client sleeps.
// B leaves and is stopped. The client asks B only, for good, though its list
// has A (RuleSetAlone).
func (m *Membership) alone(i int) bool {
	if i >= m.listed || !m.retired(i) || !m.rules.on(RuleSetAlone) {
		return false
	}
	if n := &m.nodes[i]; n.fault == SetAlias && m.nodes[n.other].up {
		return false
	}
	reached := uint32(0)
	for j := range min(len(m.nodes), maxNodes) {
		if n := &m.nodes[j]; n.up && n.known {
			reached |= 1 << j
		}
	}
	return !m.config.Quorums(m.slot, m.rules).Met(reached)
}

// awaited returns which member is recorded at the address of node i, if that
// node is none, and the member was seen elsewhere and does not answer there. It
// is -1 if there is none.
//
// Invariant: a member is asked for at its own address while it does not answer
// where it was seen. Without the rule A and D have each other's address while D
// replaces A, and change back. A is stopped then, and no number asks at D's
// address (RuleSetHome).
func (m *Membership) awaited(i int) int {
	if !m.exchanged() || i >= len(m.nodes) || !m.rules.on(RuleSetHome) {
		return -1
	}
	k := m.config.Place(m.addrs[i])
	if k < 0 || !m.retired(i) || m.nodes[m.slot(k)].up || m.movedAway(m.slot(k)) {
		return -1
	}
	return k
}

// movedAway reports whether a newer list has named the address of a node.
//
// Invariant: such a member is not asked for at its recorded address, which the
// list has dropped. What shows its identity there has a copy of its data. The
// client would count on the copy while the member is away, and other clients
// count on the member (RuleSetUnlisted).
func (m *Membership) movedAway(i int) bool {
	return m.nodes[i].named && m.rules.on(RuleSetUnlisted)
}

// await has a node be asked while a member is awaited at its address, or the
// client is alone, and no longer.
func (m *Membership) await() {
	m.numberHomes()
	for j := range m.nodes {
		switch {
		case m.awaited(j) >= 0 || m.alone(j):
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: j}, Begin: true})
		case m.config != nil && (m.config.Place(m.addrs[j]) >= 0 || j < m.listed) && !m.Wants(j):
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: j}, Cease: true})
		}
	}
}

// numberHomes makes a number for the address of each member that does not
// answer where it was seen, if no number has that address.
//
// Invariant: some number has the address of each member that is awaited.
// Without that F enters while B's address leads to it, and a client meets F
// there only. The addresses change back, B is stopped, and no number asks at
// F's address.
func (m *Membership) numberHomes() {
	if !m.exchanged() || !m.rules.on(RuleSetHome) {
		return
	}
	for k, member := range m.config.Members {
		if at := m.slot(k); m.nodes[at].up || m.movedAway(at) || slices.Contains(m.addrs, member.Addr) || len(m.nodes) >= maxNodes {
			continue
		}
		m.Know(member.Addr)
		m.known = len(m.nodes)
		c := *m.config // the runtime makes the node as it hears of the group
		m.config = &c
	}
}

// retired reports whether a node is no member of the set any more, or not yet.
func (m *Membership) retired(i int) bool { return m.exchanged() && m.Member(i) < 0 }

// exchanged reports whether nodes of the set that the client counts on were
// ever exchanged.
func (m *Membership) exchanged() bool { return m.config != nil && m.config.Stamp.Epoch() > 1 }

// notFormer returns a node of the client's list that is no member of the set,
// and was none, -1 if there is none. An address that the set records is of the
// set, whatever is there. Without that a client that met an empty server at B's
// address, and B at another one, is refused for good.
func (m *Membership) notFormer() int {
	for i := range m.listed {
		n := &m.nodes[i]
		kin := n.has.Config != nil && m.config.Kin(n.has.Config) // a member of before, by another name
		if m.Member(i) < 0 && !m.config.left(m.addrs[i]) && m.config.Place(m.addrs[i]) < 0 && n.met && n.place < 0 && !kin {
			return i
		}
	}
	return -1
}

// behind reports whether a node serves an earlier configuration of the set, and
// is a member of this one.
func (m *Membership) behind(i int) bool {
	n := &m.nodes[i]
	return n.has.Config != nil && !n.has.Regains && n.has.Config.Stamp.Epoch() < m.config.Stamp.Epoch() && m.config.Member(n.has.Identity) >= 0
}

// move has a member serve the configuration that the client counts on. It keeps
// what it has.
func (m *Membership) move(i int) {
	n := &m.nodes[i]
	n.has.Config, n.has.Phase = m.config, SetRecorded
	m.member(i)
	if n := &m.nodes[i]; n.fault == SetFits { // there may be more nodes now
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i, Kind: SetMove, Identity: n.has.Identity, Config: m.config}})
	}
}
