package nodeset

import (
	"math/bits"
	"slices"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// Which configuration a client relies on, and which member each number stands
// for. A Membership consists of contacts (contacts.go), what members report
// (vouch.go, following.go), and what the client records (recorder.go).
//
//	connections to the client's list          connections to members
//	  q of these show a configuration  --->   each counts as member k while the server at
//	  (contacts.go)                           k's address shows k's identity (binding.go)
//	        ^                                        |
//	        `--- no quorum is reached               q members show a later one (following.go)
//
// Invariant: a client counts on one configuration only, and each of its
// requests names it. A node serves the requests of its own configuration only.
// So two claims that hold at one time had their votes from majorities of one
// set.

// Membership is what a client knows about the set of its nodes. It is not safe
// for concurrent use.
type Membership struct {
	contacts
	reports  memberReports
	Recorder Recorder

	stood [protocol.MaxNodes]string // per number: the identity that claims associate with it, or did last
	// Numbers that were given to another member since Group was last called.
	reassigned uint32
	// The configuration began to count after an earlier claim may have been
	// admitted without its nodes.
	skipped bool
	known   int // numbers up to here were members
}

func NewMembership(list []string) *Membership {
	m := &Membership{contacts: contacts{list: slices.Clone(list), seeds: make([]contact, len(list))}}
	m.reports.contacts, m.Recorder.contacts = &m.contacts, &m.contacts
	return m
}

// adopt makes the client count on a configuration. New connections judge what
// the servers of its members are.
func (m *Membership) adopt(by int, c *Configuration) {
	was := m.config
	m.config, m.Recorder.last = c, c
	m.skipped = m.skipped || !c.widens(was)
	if was != nil {
		for _, gone := range was.Members {
			if c.Numbered(gone.Number) != nil && c.Numbered(gone.Number).Identity == gone.Identity {
				continue
			}
			// It stores the configuration that followed, and serves nothing. So a client
			// that has its address in its list can find the set.
			if n := &m.members[gone.Number]; n.up && n.fault == SetFits && c.Stage == Stable {
				m.do(gone.Number, SetAction{RecordStep: RecordStep{Kind: SetRetire,
					Identity: gone.Identity, Config: c}})
			}
			m.do(gone.Number, SetAction{Cease: true})
			m.blank(gone.Number, SetRetired)
		}
	}
	for _, member := range c.Members {
		k := member.Number
		m.do(k, SetAction{Begin: true})
		if id := m.stood[k]; id != member.Identity {
			if id != "" {
				m.reassigned |= 1 << k
			}
			m.stood[k] = member.Identity
			m.blank(k, SetUnknown)
			m.do(k, SetAction{Reconnect: true})
		} else if k != by {
			m.Again(k)
		}
	}
	m.tend()
}

// blank resets what is known of the member with a number.
func (m *Membership) blank(k int, fault SetFault) {
	m.members[k], m.reports.byNumber[k] = contact{fault: fault}, memberReport{}
}

// forget makes the client rely on no set: each member has lost its data, or is
// now in another set. The client then behaves as if it had just started with
// the addresses of the members that decide what follows as its list.
//
// A connection to a server of another set ends at once, so what it showed
// counts until the next one. Otherwise a client that meets its members only
// after others have recorded them again would wait for all to be up together.
func (m *Membership) forget() {
	if m.config == nil || m.remembered() {
		return
	}
	var list []string
	for _, member := range m.config.Members {
		if member.Role != Enters {
			list = append(list, member.dialedBy(m.list))
		}
	}
	for _, member := range m.config.Members {
		m.do(member.Number, SetAction{Cease: true})
		m.blank(member.Number, SetFits)
	}
	// Relist does not end connections past the end of the new list.
	for i := len(list); i < len(m.list); i++ {
		m.do(Seed+i, SetAction{Cease: true})
	}
	m.config, m.list = nil, nil // what its list has shown before is over, too
	m.Relist(list)
}

// remembered reports whether the client's set may still be there. Members that
// enter count, too. For example, A becomes A, B and C:
//
//	A decides that all three count from now on. X has read it, and Y has not.
//	A loses its data. X has B and C serve what was decided: they are a majority.
//	For Y, A alone decided what follows. If it forgot the set now and recorded
//	A as a new one, both could hold.
//
// A server of the client's list that is not recorded there counts if it showed a
// member's identity last, or a later configuration. The member's address leads
// elsewhere from here, as localhost does. What it showed before the connection
// ended counts, too, unless the member has moved since: another server may have
// the address now.
func (m *Membership) remembered() bool {
	if slices.ContainsFunc(m.seeds, func(n contact) bool {
		c := n.has.Recorded()
		if !n.met || n.ended || c == nil || !c.Kin(m.config) {
			return false
		}
		k, was := m.config.Member(n.has.Identity), c.Member(n.has.Identity)
		moved := k >= 0 && was >= 0 && m.config.Members[k].Addr != c.Members[was].Addr
		shows := k >= 0 && (n.up || !moved) || c.Stamp.Epoch() > m.config.Stamp.Epoch()
		return shows //mutant:RuleSetForget=false
	}) {
		return true
	}
	return slices.ContainsFunc(m.config.Members, func(member Member) bool {
		n := &m.members[member.Number]
		c := n.has.Recorded()
		gone := n.up && (c == nil || !c.Kin(m.config)) || n.fault == SetForeign
		return !gone //mutant:RuleSetForget=!gone && member.Role != Enters
	})
}

// Decide takes a successor of the client's configuration: this client has
// decided it, or has read that it was decided.
func (m *Membership) Decide(c *Configuration) {
	if m.config != nil && c.Stamp.Epoch() > m.config.Stamp.Epoch() {
		m.adopt(-1, c)
	}
}

// HandleReport processes what member k stores, in answer to the SetAction with
// that number.
func (m *Membership) HandleReport(k int, ask uint32, has NodeSet, next RecordedNext) {
	if c := m.reports.handleReport(k, ask, has, next); c != nil {
		m.adopt(-1, c)
	}
}

// Group returns which nodes the client asks, and which of them make a quorum.
// It reports RestartJoining and Reassigned only once.
func (m *Membership) Group() protocol.Group {
	if m.config == nil {
		return protocol.Group{}
	}
	c := m.config
	asked := c.numbers(func(*Member) bool { return true })
	m.known = max(m.known, bits.Len32(asked))
	g := protocol.Group{
		Nodes: m.known, Sets: c.Quorums(), Deciders: protocol.Quorums{Present: c.Deciders()},
		Successor:  SuccessorName(c.Stamp),
		Reassigned: m.reassigned, RestartJoining: m.skipped, Window: protocol.WindowOf(c.LeaseGuard()),
		Guard: c.Guard(), LongestTTL: c.LongestTTL(),
	}
	g.Absent = ^asked & (1<<g.Nodes - 1)
	m.skipped, m.reassigned = false, 0
	if invariant.On {
		checkGroup(&g)
		m.check()
	}
	return g
}
