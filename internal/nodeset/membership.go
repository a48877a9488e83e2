package nodeset

import (
	"math/bits"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what a client knows of the set of its nodes: which
// configuration it counts on, and what each of its connections has shown. What
// follows from that is in binding.go, finding.go, following.go
// and vouch.go.
//
//	connections to the client's list          connections to members
//	  q of these show a configuration  --->   each counts as member k while the server at
//	  (finding.go)                            k's address shows k's identity (binding.go)
//	        ^                                        |
//	        `--- no quorum is reached               q members show a later one (following.go)
//
// Invariant: a client counts on one configuration only, and each of its
// requests names it. A node serves the requests of its own configuration only.
// So two claims that hold at one time had their votes from majorities of one
// set.
// Invariant: what is in doubt does not vote. A node that does not vote is a
// node that is down, which is always safe.

// Seed is the first number of a connection to an address of the client's list.
// The numbers below are those of members.
const Seed = protocol.MaxNodes

// SetFault is why a connection counts as no member.
type SetFault uint8

const (
	SetFits    SetFault = iota // none: it counts as a member
	SetUnknown                 // it is not known yet which set counts
	SetWrong                   // the list is another one than its nodes' sets: no node is used
	SetPending                 // its set is about to be recorded
	SetLost                    // it is blank at the address of a member
	SetBetween                 // so it is, and too few members can say what the set is while it is being changed
	SetOther                   // it has another member's data
	SetForeign                 // it has the data of another set
	SetAhead                   // it serves a later configuration, of which it is not known yet whether it was decided
	SetRetired                 // it is no member
)

// SetVerdict is what a client makes of a connection.
type SetVerdict struct {
	Fault SetFault
	Node  int
	Shown *Configuration // that the node shows, nil for none
	As    string         // the identity that it shows
	Set   *Configuration // that the client counts on, nil for none
	Asks  bool           // of SetLost: q members have said what the set is, and are asked whether they still do
}

// Enters reports whether the node is a blank one that is about to enter the
// set. It has lost nothing.
func (v SetVerdict) Enters() bool {
	if v.Fault != SetLost && v.Fault != SetBetween {
		return false
	}
	member := v.Set.Numbered(v.Node)
	return member != nil && member.Role == Enters
}

// SetAction is what is to be done about a connection.
type SetAction struct {
	RecordStep
	Reconnect bool   // end the connection, the next one judges again; else the step is to be carried out
	Begin     bool   // connect to it, see Wants
	Cease     bool   // end the connection, see Wants
	Ask       uint32 // not 0: ask on the connection that there is what the node keeps: see Told
}

// Membership is what a client knows of its nodes' set. It is not safe for
// concurrent use.
type Membership struct {
	Out []SetAction

	rules   protocol.Rules
	list    []string // the client's
	config  *Configuration
	seeds   []contact                  // by place in list
	members [protocol.MaxNodes]contact // by number
	stood   [protocol.MaxNodes]string  // the identity that claims take a number for, or took it for last
	others  uint32                     // numbers that stand for another member than before, since Group was called
	skipped bool                       // the configuration has begun to count since a claim of before may have been admitted without its nodes
	asked   uint32                     // counts the questions to members, see vouched
	known   int                        // numbers up to here were members
	claimed bool                       // a call waits for nodes: see Want
	mine    *Recording                 // this client's last one
	shared  Shared                     // those of the last configuration
}

// contact is one connection, and what the server has shown there.
type contact struct {
	up    bool
	again bool // it is to be judged again: its connection ends
	met   bool
	ended bool // of the list: it is not connected to, see Wants
	has   NodeSet
	fault SetFault

	life     string // the life of its data in which it was last seen blank
	since    uint32 // the number of the first question after that; 0: it was never seen so
	answered uint32 // the last question to which it said the set
	next     RecordedNext
}

// RecordedNext is what a node's register says of what follows a configuration.
type RecordedNext struct {
	Of      Stamp // the configuration that is followed
	Version protocol.Version
	Config  *Configuration // nil: nothing
}

func NewMembership(list []string, rules protocol.Rules) *Membership {
	return &Membership{rules: rules, list: slices.Clone(list), seeds: make([]contact, len(list))}
}

// Config returns the configuration that the client counts on, nil for none.
func (m *Membership) Config() *Configuration { return m.config }

// Stamp returns what its requests name.
func (m *Membership) Stamp() Stamp {
	if m.config == nil {
		return ""
	}
	return m.config.Stamp
}

func (m *Membership) List() []string { return slices.Clone(m.list) }

// Relist gives the client another list. It binds nothing: the addresses are
// asked which set counts. Connections to addresses that are at the same place
// of both lists go on, the others end.
func (m *Membership) Relist(list []string) {
	seeds := make([]contact, len(list))
	for i := range max(len(m.list), len(list)) {
		switch {
		case i < min(len(m.list), len(list)) && m.list[i] == list[i]:
			seeds[i] = m.seeds[i]
			continue
		case i < len(list):
			seeds[i].ended = true // tend has it begin
		}
		if i < len(m.list) {
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: Seed + i}, Cease: true})
		}
	}
	m.list, m.seeds = slices.Clone(list), seeds
	m.tend()
}

// at returns a connection. One to an address that has left the list shows
// nothing.
func (m *Membership) at(i int) *contact {
	switch {
	case i-Seed >= len(m.seeds):
		return &contact{fault: SetUnknown}
	case i >= Seed:
		return &m.seeds[i-Seed]
	}
	return &m.members[i]
}

// each calls f with each connection that the client may have.
func (m *Membership) each(f func(i int, n *contact)) {
	for i := range m.seeds {
		f(Seed+i, &m.seeds[i])
	}
	if m.config != nil {
		for _, member := range m.config.Members {
			f(member.Number, &m.members[member.Number])
		}
	}
}

// Addr returns the address of a connection, empty for the number of no member.
func (m *Membership) Addr(i int) string {
	if i >= Seed {
		if i-Seed < len(m.list) {
			return m.list[i-Seed]
		}
		return ""
	}
	if member := m.config.Numbered(i); member != nil {
		return member.Addr
	}
	return ""
}

// contactAt returns the connection to an address, nil if there is none.
func (m *Membership) contactAt(addr string) *contact {
	if i := m.numberAt(addr); i >= 0 {
		return m.at(i)
	}
	return nil
}

// numberAt is contactAt by the number of the connection, -1 if there is none.
func (m *Membership) numberAt(addr string) int {
	if m.config != nil {
		if k := m.config.Place(addr); k >= 0 {
			return m.config.Members[k].Number
		}
	}
	if i := slices.Index(m.list, addr); i >= 0 {
		return Seed + i
	}
	return -1
}

// Wants reports whether a connection is to be there: those to members, and
// those to the addresses of the list while no quorum of members is reached. An
// address of the list that is a member's needs no second connection.
// Invariant: a client without a quorum asks each node of its list. See
// RuleSetAlone.
func (m *Membership) Wants(i int) bool {
	switch addr := m.Addr(i); {
	case addr == "":
		return false
	case i < Seed || m.config == nil:
		return true
	default:
		return m.config.Place(addr) < 0 && !m.reached() && m.rules.On(protocol.RuleSetAlone)
	}
}

// reached reports whether a quorum of members is connected.
func (m *Membership) reached() bool {
	up := m.config.numbers(func(k *Member) bool { n := &m.members[k.Number]; return n.up && n.fault == SetFits })
	return m.config.Quorums(m.rules).Met(up)
}

// tend has the connections to the list begin or end, as Wants says.
func (m *Membership) tend() {
	for i := range m.seeds {
		if n, wants := &m.seeds[i], m.Wants(Seed+i); wants == n.ended {
			n.ended = !wants
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: Seed + i}, Begin: wants, Cease: !wants})
		}
	}
}

// Has returns what a connection has shown, nil if it has shown nothing.
func (m *Membership) Has(i int) *NodeSet {
	if m.Addr(i) == "" || !m.at(i).met {
		return nil
	}
	n := m.at(i)
	has := n.has
	return &has
}

// Again has a connection be judged again. One that is not ready yet cannot be
// ended: Up does it then.
func (m *Membership) Again(i int) {
	if m.Addr(i) == "" {
		return
	}
	if n := m.at(i); n.up && !n.again {
		n.again = true
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Reconnect: true})
	}
}

// step has a node carry out a step before anything else.
func (m *Membership) step(k int, s RecordStep) {
	s.Node = k
	m.Out = append(m.Out, SetAction{RecordStep: s})
}

// Refused says that a node has refused a request, as it serves another
// configuration, or another life of its data: the next connection shows which.
// A node without a vote gets none.
func (m *Membership) Refused(i int) {
	if m.Addr(i) != "" && m.at(i).fault == SetFits {
		m.Again(i)
	}
}

// adopt has the client count on a configuration. What its members are is judged
// by new connections.
func (m *Membership) adopt(by int, c *Configuration) {
	was := m.config
	m.config, m.shared = c, Shared{Guard: c.Guard(), Retention: c.Retention(), Skew: c.Skew()}
	m.skipped = m.skipped || !c.widens(was)
	if was != nil {
		for _, gone := range was.Members {
			if c.Numbered(gone.Number) == nil || c.Numbered(gone.Number).Identity != gone.Identity {
				m.retire(gone)
			}
		}
	}
	for _, member := range c.Members {
		k := member.Number
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: k}, Begin: true})
		if id := m.stood[k]; id != member.Identity {
			if id != "" {
				m.others |= 1 << k
			}
			m.stood[k], m.members[k] = member.Identity, contact{fault: SetUnknown}
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: k}, Reconnect: true})
		} else if k != by {
			m.Again(k)
		}
	}
	m.tend()
}

// retire has a member that has left keep the configuration that followed, and
// serve nothing. So a client whose list has its address finds the set.
func (m *Membership) retire(gone Member) {
	n := &m.members[gone.Number]
	if n.up && n.fault == SetFits && m.config.Stage == Stable {
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: gone.Number, Kind: SetRetire, Identity: gone.Identity, Config: m.config}})
	}
	m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: gone.Number}, Cease: true})
	*n = contact{fault: SetRetired}
}

// Decide says that a configuration follows which the client counts on: this
// client has decided it, or read that it was decided.
func (m *Membership) Decide(c *Configuration) {
	if m.config != nil && c.Stamp.Epoch() > m.config.Stamp.Epoch() {
		m.adopt(-1, c)
	}
}

// Group returns which nodes the client asks, and which of them make a quorum.
// It says RestartJoining and Others once.
func (m *Membership) Group() protocol.Group {
	if m.config == nil {
		return protocol.Group{}
	}
	c := m.config
	asked := c.numbers(func(*Member) bool { return true })
	m.known = max(m.known, bits.Len32(asked))
	g := protocol.Group{
		Nodes: m.known, Sets: c.Quorums(m.rules), Deciders: protocol.Quorums{Present: c.Deciders()}, Successor: SuccessorName(c.Stamp),
		Others: m.others, RestartJoining: m.skipped, Window: protocol.WindowOf(c.LeaseGuard()), Guard: c.Guard(), LongestTTL: c.LongestTTL(),
	}
	g.Absent = ^asked & (1<<g.Nodes - 1)
	m.skipped, m.others = false, 0
	return g
}
