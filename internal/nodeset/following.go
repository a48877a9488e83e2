package nodeset

import (
	"github.com/quorate/quorate/internal/protocol"
	"slices"
)

// This file owns how a client that counts on a configuration follows its set to
// a later one.
// Invariant: a client adopts a later configuration only when a majority of the
// members that decide what follows show it, or what followed it, or have it in
// their registers. No configuration vouches for itself: what one node shows is
// a question. So no address is dialled, and no password sent, that such a
// majority has not named (RuleSetFollow).

// newer returns the configuration that the client is to go on with, nil if none
// is found.
func (m *Membership) newer() *Configuration {
	if m.config == nil {
		return nil
	}
	shown := m.later()
	if need := protocol.NeedOf(m.config.Deciders()); len(shown) >= need {
		return shown[need-1]
	} else if len(shown) > 0 && !m.rules.On(protocol.RuleSetFollow) {
		return shown[0]
	}
	return m.decided(shown)
}

// later returns the later configurations that members show which decide what
// follows, the latest first: one for each of these members.
func (m *Membership) later() (shown []*Configuration) {
	for _, member := range m.config.Members {
		n := &m.members[member.Number]
		if c := n.has.Recorded(); member.Role != Enters && m.speaks(member.Number) && c.Stamp.Epoch() > m.config.Stamp.Epoch() {
			shown = append(shown, c)
		}
	}
	slices.SortFunc(shown, func(a, b *Configuration) int { return b.Stamp.Compare(a.Stamp) })
	return shown
}

// speaks reports whether what the server at the address of member k keeps is
// that member's word on what follows: it is connected, of this set, and the
// member, or was the member and has entered again as another one. A server with
// the data of another member is not: that one would speak twice.
func (m *Membership) speaks(k int) bool {
	n, member := &m.members[k], m.config.Numbered(k)
	c := n.has.Recorded()
	return n.up && c != nil && c.Kin(m.config) && (n.has.Identity == member.Identity || m.config.Member(n.has.Identity) < 0)
}

// decided returns what the registers of the members say was decided to follow,
// nil if that is not known: a majority serves it, or has it in its register,
// and either one serves it or all of these have it of one version.
// Invariant: members that have one value of different versions prove nothing.
// Another value may have been proposed in between, and be decided later
// (RuleSetVersion).
func (m *Membership) decided(shown []*Configuration) *Configuration {
	deciders := m.config.Deciders()
	for k := range m.members {
		next := &m.members[k].next
		if deciders&(1<<k) == 0 || next.Of != m.config.Stamp || next.Config == nil || next.Config.Stamp.Epoch() != m.config.Stamp.Epoch()+1 {
			continue
		}
		serves := slices.ContainsFunc(shown, func(c *Configuration) bool { return c.Stamp == next.Config.Stamp })
		have := m.config.numbers(func(o *Member) bool {
			n := &m.members[o.Number]
			if !m.speaks(o.Number) {
				return false
			}
			recorded := n.next.Of == next.Of && n.next.Config != nil && n.next.Config.Stamp == next.Config.Stamp &&
				(serves || n.next.Version == next.Version || !m.rules.On(protocol.RuleSetVersion))
			return recorded || n.has.Stamp() == next.Config.Stamp
		})
		if protocol.Most(deciders, have) && next.Config.Kin(m.config) {
			return next.Config
		}
	}
	return nil
}

// found returns the configuration that q nodes of the client's list show: the
// latest that each of q shows, or what followed it. It is nil if there is none,
// or the client counts on it or on a later one of its set.
// Invariant: what fewer than q nodes of the list show is not adopted. One node
// may show anything (RuleSetFound).
func (m *Membership) found() *Configuration {
	if m.config != nil && m.reached() {
		return nil
	}
	for _, set := range m.shown() {
		need := len(m.list)/2 + 1
		if !m.rules.On(protocol.RuleSetFound) {
			need = 1
		}
		if len(set) < need {
			continue
		}
		if c := set[need-1]; m.config == nil || c.Kin(m.config) && c.Stamp.Epoch() > m.config.Stamp.Epoch() {
			return c
		}
	}
	return nil
}

// shown returns which configurations the nodes of the list show as recorded,
// the latest of each set first. A node of the list that is a member's address
// is asked as that member.
func (m *Membership) shown() (sets [][]*Configuration) {
	for _, addr := range m.list {
		n := m.contactAt(addr)
		c := n.has.Recorded()
		if c == nil || m.config != nil && !n.up {
			continue
		}
		at := slices.IndexFunc(sets, func(s []*Configuration) bool { return s[0].Kin(c) })
		if at < 0 {
			at, sets = len(sets), append(sets, nil)
		}
		sets[at] = append(sets[at], c)
	}
	for _, s := range sets {
		slices.SortFunc(s, func(a, b *Configuration) int { return b.Stamp.Compare(a.Stamp) })
	}
	slices.SortFunc(sets, func(a, b []*Configuration) int { return len(b) - len(a) })
	return sets
}

// forget has the client count on no set any more: each member that decides what
// follows has lost its data, or is of another set by now. It then does as a
// client that starts, whose list is theirs.
func (m *Membership) forget() {
	if m.config == nil {
		return
	}
	var list []string
	for _, member := range m.config.Members {
		n := &m.members[member.Number]
		if member.Role == Enters { // it alone decides nothing
			continue
		}
		if c := n.has.Config; !n.up || c != nil && c.Kin(m.config) {
			return
		}
		list = append(list, member.Addr)
	}
	for _, member := range m.config.Members {
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: member.Number}, Cease: true})
		m.members[member.Number] = contact{}
	}
	// Relist knows nothing of the places behind the new list's.
	for i := len(list); i < len(m.list); i++ {
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: Seed + i}, Cease: true})
	}
	m.config, m.list = nil, nil // what its list has shown before is over, too
	m.Relist(list)
}

// Wrong returns why no node may be used, SetFits if they may: no q nodes of the
// list agree on a set, and they show different ones, or one that has other
// members.
func (m *Membership) Wrong() SetVerdict {
	if m.config != nil {
		return SetVerdict{}
	}
	sets := m.shown()
	if len(sets) == 0 {
		return SetVerdict{}
	}
	c, missing := sets[0][0], 0
	for i := range m.seeds {
		if !m.seeds[i].met {
			missing++
		}
	}
	if len(sets[0])+missing >= len(m.list)/2+1 || len(sets) == 1 && m.covers(c) {
		return SetVerdict{} // q nodes may agree yet, or the set is recorded again
	}
	return SetVerdict{Fault: SetWrong, Node: m.showing(c), Shown: c}
}

// showing returns a connection that shows a configuration.
func (m *Membership) showing(c *Configuration) int {
	return Seed + max(0, slices.IndexFunc(m.seeds, func(n contact) bool { return n.has.Config == c }))
}

// covers reports whether the list has the address of each member.
func (m *Membership) covers(c *Configuration) bool {
	return !slices.ContainsFunc(c.Members, func(k Member) bool { return !slices.Contains(m.list, k.Addr) })
}
