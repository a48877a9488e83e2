package nodeset

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// A client's connections: which of them should exist, what each has shown, and
// which set the addresses of its list show.

// contacts are the connections to the members of a configuration and to the
// addresses of a list.
type contacts struct {
	Out []SetAction

	list    []string // the client's
	config  *Configuration
	stands  map[standIn]string         // see Stand
	seeds   []contact                  // by place in list
	members [protocol.MaxNodes]contact // by number
}

// contact is one connection, and what the server has shown there.
type contact struct {
	up    bool // the server has shown what it keeps
	ready bool // it is up, and requests can be sent
	again bool // it is to be judged again: its connection ends
	met   bool
	ended bool // of the list: it is not connected to, see Wants
	has   NodeSet
	fault SetFault
}

// Seed is the first number of a connection to an address of the client's list.
// The numbers below are those of members.
const Seed = protocol.MaxNodes

// SetFault is why a connection counts as no member.
type SetFault uint8

const (
	SetFits    SetFault = iota // none: it counts as a member
	SetUnknown                 // it is not known yet which set counts
	SetWrong                   // the list differs from the sets of its nodes: no node is used
	SetPending                 // its set is about to be recorded
	SetLost                    // it is blank at the address of a member
	// Like SetLost, while the set is being changed: too few members can say
	// which configuration counts.
	SetBetween
	SetOther   // it has another member's data
	SetForeign // it has the data of another set
	// It serves a later configuration, and it is not known yet whether that one
	// was decided.
	SetAhead
	SetRetired // it is not a member
)

// SetVerdict is what a client makes of a connection.
type SetVerdict struct {
	Fault SetFault
	Node  int
	Shown *Configuration // that the node shows, nil for none
	As    string         // the identity that it shows
	Set   *Configuration // that the client counts on, nil for none
	// With SetLost: q members have said which set this is, and are being asked
	// whether they still say so.
	Asks bool
}

// Enters reports whether the node is blank and about to enter the set, so it
// has not lost anything.
func (v SetVerdict) Enters() bool {
	member := v.Set.Numbered(v.Node)
	return (v.Fault == SetLost || v.Fault == SetBetween) && member != nil && member.Role == Enters
}

// SetAction is what to do about a connection.
type SetAction struct {
	RecordStep
	Reconnect bool   // end the connection, the next one judges again; else the step is to be carried out
	Begin     bool   // connect to it, see Wants
	Cease     bool   // end the connection, see Wants
	Ask       uint32 // not 0: ask on the connection that there is what the node keeps: see Told
}

// Config returns the configuration that the client counts on, nil for none.
func (t *contacts) Config() *Configuration { return t.config }

// Stamp returns the stamp that the client's requests name.
func (t *contacts) Stamp() Stamp {
	if t.config == nil {
		return ""
	}
	return t.config.Stamp
}

func (t *contacts) List() []string { return slices.Clone(t.list) }

// Relist gives the client another list. This decides nothing by itself: the
// addresses are asked which set counts. Connections to addresses at the same
// position in both lists continue, and the others end.
func (t *contacts) Relist(list []string) {
	seeds := make([]contact, len(list))
	for i := range max(len(t.list), len(list)) {
		switch {
		case i < min(len(t.list), len(list)) && t.list[i] == list[i]:
			seeds[i] = t.seeds[i]
			continue
		case i < len(list):
			seeds[i].ended = true // tend has it begin
		}
		if i < len(t.list) {
			t.do(Seed+i, SetAction{Cease: true})
		}
	}
	t.list, t.seeds = slices.Clone(list), seeds
	t.tend()
}

// at returns a connection. If the address has left the list, or the number
// belongs to no member, the connection is not up and shows nothing.
func (t *contacts) at(i int) *contact {
	switch {
	case i-Seed >= len(t.seeds):
		return &contact{fault: SetUnknown}
	case i >= Seed:
		return &t.seeds[i-Seed]
	}
	return &t.members[i]
}

// each calls f with each connection that the client may have.
func (t *contacts) each(f func(i int, n *contact)) {
	for i := range t.seeds {
		f(Seed+i, &t.seeds[i])
	}
	if t.config != nil {
		for _, member := range t.config.Members {
			f(member.Number, &t.members[member.Number])
		}
	}
}

// Addr returns the address of a connection, empty for the number of no member.
func (t *contacts) Addr(i int) string {
	switch member := t.config.Numbered(i); {
	case member != nil:
		return cmp.Or(t.stands[standIn{member.Identity, member.Addr}], member.dialedBy(t.list))
	case i >= Seed && i-Seed < len(t.list):
		return t.list[i-Seed]
	}
	return ""
}

// contactAt returns the connection to an address and its number, nil if there
// is none.
func (t *contacts) contactAt(addr string) (i int, n *contact) {
	if t.config != nil {
		if k := t.config.Place(addr); k >= 0 {
			i = t.config.Members[k].Number
			return i, &t.members[i]
		}
	}
	if i = slices.Index(t.list, addr); i >= 0 {
		return Seed + i, &t.seeds[i]
	}
	return i, nil
}

// Wants reports whether a connection is to be there: those to members, and
// those to the addresses of the list while no quorum of members is reached. An
// address of the list that is a member's needs no second connection.
// A client without a quorum asks each node of its list: see RuleSetAlone.
func (t *contacts) Wants(i int) bool {
	switch addr := t.Addr(i); {
	case addr == "":
		return false
	case i < Seed || t.config == nil:
		return true
	default:
		return t.config.Place(addr) < 0 && !t.reached() //mutant:RuleSetAlone=false
	}
}

// reached reports whether a quorum of members is connected.
func (t *contacts) reached() bool {
	up := t.config.numbers(func(k *Member) bool {
		n := &t.members[k.Number]
		return n.up && n.fault == SetFits
	})
	return t.config.Quorums().Met(up)
}

// tend starts and ends the connections to the addresses of the list, according
// to Wants.
func (t *contacts) tend() {
	for i := range t.seeds {
		if n, wants := &t.seeds[i], t.Wants(Seed+i); wants == n.ended {
			n.ended = !wants
			t.do(Seed+i, SetAction{Begin: wants, Cease: !wants})
		}
	}
}

// Has returns what a connection has shown, nil if it has shown nothing.
func (t *contacts) Has(i int) *NodeSet {
	if n := t.at(i); n.met {
		has := n.has
		return &has
	}
	return nil
}

// Again has a connection judged again. A connection that is not ready yet
// cannot be ended, so Up does it later.
func (t *contacts) Again(i int) {
	if n := t.at(i); n.up && !n.again {
		n.again = true
		t.do(i, SetAction{Reconnect: true})
	}
}

// Rejudge has all nodes without a vote judged again.
func (t *contacts) Rejudge() {
	t.each(func(i int, n *contact) {
		if n.fault != SetFits {
			t.Again(i)
		}
	})
}

// Refused records that a node has refused a request because it serves another
// configuration, or has another incarnation of its data; the next connection
// shows which. A node without a vote gets no requests.
func (t *contacts) Refused(i int) {
	if t.at(i).fault == SetFits {
		t.Again(i)
	}
}

// do schedules an action for a connection. A step is carried out there before
// anything else.
func (t *contacts) do(i int, a SetAction) {
	a.Node = i
	t.Out = append(t.Out, a)
}

// found returns the configuration that q nodes of the client's list show: the
// latest that each of q shows, or what followed it. It is nil if there is none,
// or the client counts on it or on a later one of its set.
// Invariant: what fewer than q nodes of the list show is not adopted. One node
// may show anything (RuleSetFound).
func (t *contacts) found() *Configuration {
	if t.config != nil && t.reached() {
		return nil
	}
	for _, set := range t.shown() {
		need := len(t.list)/2 + 1 //mutant:RuleSetFound=1
		if len(set) >= need && (t.config == nil || set[0].Kin(t.config) &&
			set[need-1].Stamp.Epoch() > t.config.Stamp.Epoch()) {
			return set[need-1]
		}
	}
	return nil
}

// shown returns which configurations the nodes of the list show as recorded,
// the latest of each set first. A node of the list that is a member's address
// is asked as that member.
func (t *contacts) shown() (sets [][]*Configuration) {
	for _, addr := range t.list {
		_, n := t.contactAt(addr)
		c := n.has.Recorded()
		if c == nil || t.config != nil && !n.up {
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

// Wrong returns why no node may be used, or SetFits if they may: no q nodes of
// the list agree on a set, and they show different sets, or one that has other
// members.
func (t *contacts) Wrong() SetVerdict {
	if t.config != nil {
		return SetVerdict{}
	}
	sets := t.shown()
	if len(sets) == 0 {
		return SetVerdict{}
	}
	c, missing := sets[0][0], 0
	for i := range t.seeds {
		if !t.seeds[i].met {
			missing++
		}
	}
	if len(sets[0])+missing >= len(t.list)/2+1 || len(sets) == 1 && c.coveredBy(t.list) {
		return SetVerdict{} // q nodes may agree yet, or the set is recorded again
	}
	shows := slices.IndexFunc(t.seeds, func(n contact) bool { return n.has.Config == c })
	return SetVerdict{Fault: SetWrong, Node: Seed + max(0, shows), Shown: c}
}
