package protocol

import "slices"

// This file owns which node of a client goes on at another address, once a
// newer list of addresses names one.

// Moves returns the node that goes on at an address of a newer list, -1 if none
// does. has is what a server shows there.
//
// Invariant: a node moves only to an address where the member that it was shows
// itself. Without the rule an empty server of the newer list gets the place of
// a member that this client cannot reach, and two servers have one vote.
//
// Invariant: a node whose address is in the newer list stays there. A server
// that shows its identity at another address has a copy of its data. Without
// the rule the client counts on the copy while the member is down, and other
// clients count on the member.
func (m *Membership) Moves(addr string, has NodeSet, list []string) int {
	if m.config == nil || slices.Contains(m.addrs, addr) {
		return -1
	}
	at := -1
	if has.Config != nil {
		at = m.config.Member(has.Identity)
	}
	if at < 0 && m.rules.on(RuleSetSeen) || at >= 0 && m.occupied(-1, at) {
		return -1
	}
	free := func(i int) bool {
		n := &m.nodes[i]
		return !m.retired(i) && !(n.up && n.known) && !(slices.Contains(list, m.addrs[i]) && m.rules.on(RuleSetUnlisted))
	}
	odd := -1 // of the list, and no member as far as is known
	for i := range m.nodes {
		n := &m.nodes[i]
		switch recorded := m.config.Place(m.addrs[i]); {
		case !free(i):
		case at < 0 || n.place == at || n.place < 0 && recorded == at:
			return i
		case n.place < 0 && recorded < 0 && odd < 0:
			odd = i
		}
	}
	return odd
}

// Move has a node go on at an address, for which Moves has returned it. The
// connection to that address begins afterwards. If the list was refused because
// of that node, it is not any more: nodes that were refused a connection
// connect again by themselves.
func (m *Membership) Move(i int, addr string, has NodeSet) {
	n := &m.nodes[i]
	m.addrs[i] = addr
	at := n.place
	if has.Config != nil && m.config != nil { // the set may have been forgotten since Moves
		at = m.config.Member(has.Identity)
	}
	*n = setNode{named: true, place: at, known: n.known && n.place == at, shown: n.shown, mixed: n.mixed || n.blank, told: n.told, stood: n.stood}
	m.shows(i, has.Identity)
}

// List returns the addresses of the client's list, as its nodes have moved
// since.
func (m *Membership) List() []string { return slices.Clone(m.addrs[:m.listed]) }
