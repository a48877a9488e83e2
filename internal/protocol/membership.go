package protocol

import (
	"cmp"
	"slices"
)

// This file owns what a client concludes from what its nodes have recorded of
// their set: which configuration it counts on, and whether its list is that of
// the set.
//
//	no set is known -- a node shows one, and the list is that set's --> it counts on that set
//	       |                                                               |
//	       +-- the list is another one --> refused <-- a node of the list is none of the set's
//
// Invariant: a client counts on one configuration only, and each of its
// requests names it. A node serves the requests of its own configuration only.
// So two claims that hold at one time had their votes from majorities of one
// set.

// SetFault is what is wrong with a node of the list.
type SetFault uint8

// The faults.
const (
	SetFits      SetFault = iota // nothing
	SetWrong                     // the list is another one than the set's: no node is used
	SetPending                   // the set is about to be recorded
	SetLost                      // the node lost its data, and too few members can say what it was
	SetCopied                    // another node, Other, has the same identity and runs as well
	SetElsewhere                 // the node was a member, and has the data of another set now
	SetRetired                   // the node is no member any more
	SetFull                      // the node's set has members for which this client has no number left
	SetAlias                     // the client uses the node by another address, Other
	SetAstray                    // another member's data is at the address of a member
)

// SetVerdict is what a client makes of a node.
type SetVerdict struct {
	Fault SetFault
	Node  int            // whose fault it is: with SetWrong it need not be the one that was asked for
	Other int            // of SetCopied
	Shown string         // the identity that Node shows, empty for none
	Set   *Configuration // that the client counts on, or cannot
	Asks  bool           // of SetLost: q members have said what the set is, and are asked whether they still do
}

// SetAction is what is to be done about a node of the list.
type SetAction struct {
	RecordStep
	Reconnect bool // end the connection, the next one judges again; else the step is to be carried out
	Begin     bool // the node is a member from here on: connect to it
	Cease     bool // it is none any more: end the connection

	// Ask is not 0 if the node is to be asked what it keeps, on the connection
	// that it has: see Told.
	Ask uint32
}

// Membership is what a client knows of its nodes' set. It is not safe for
// concurrent use.
type Membership struct {
	Out       []SetAction
	Exchanges bool // the nodes can become others: the runtime connects to nodes beside those of the list

	rules  Rules
	addrs  []string
	listed int            // so many of these are the client's list
	known  int            // so many of these were ever asked
	config *Configuration // that it counts on; nil: no set is known
	heard  *Configuration // when Others was asked last
	asked  uint32         // counts the questions to members, see vouched
	others uint32         // nodes that have shown another identity than before, since Others was asked
	doubts uint32         // nodes that have shown their first identity, which may be that of another server, since Doubts was asked
	// restartJoining: the configuration has begun to count since a claim of
	// before may have been admitted without its nodes.
	restartJoining bool
	nodes          []setNode
}

// setNode is one address of the list.
type setNode struct {
	up    bool
	met   bool // it has shown what it keeps
	has   NodeSet
	run   string
	shown string // the last identity that it has shown
	blank bool   // it served claims before it had an identity
	mixed bool   // and another server, or none that is known to be the same, was reached since
	told  string // the identity of the member that claims take it for, empty for none
	stood string // the last one that they took it for
	place int    // of the member that it was seen to be, -1 for none yet
	named bool   // a newer list has named its address
	known bool   // it is a member, of the configuration that the client counts on
	again bool   // it has refused a request of this connection
	fault SetFault
	other int

	life       string // the life of its data in which it was last seen without a place
	since      uint32 // the number of the first question after that; 0: it was never seen so
	answered   uint32 // the last question to which it said the set
	answeredAs Stamp  // that was this one
}

// NewMembership returns what a client of these addresses knows at its start.
func NewMembership(addrs []string, rules Rules) *Membership {
	m := &Membership{rules: rules, addrs: slices.Clone(addrs), listed: len(addrs), nodes: make([]setNode, len(addrs))}
	for i := range m.nodes {
		m.nodes[i].place = -1
	}
	return m
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

// Met says what node i, which the given run of a server is, keeps as a
// connection begins. Unless the verdict is SetFits the connection must not be
// used. A step for node i in Out comes before all that is said to it on the
// connection.
func (m *Membership) Met(i int, run string, has NodeSet) SetVerdict {
	n := &m.nodes[i]
	n.mixed = n.mixed || n.blank && (n.run != run || run == "")
	n.up, n.met, n.run, n.has, n.again, n.known, n.fault = true, true, run, has, false, false, SetFits
	if m.shows(i, has.Identity); has.Config == nil && m.config == nil {
		n.blank = true
	}
	if has.Config != nil && has.Config.Stamp.Epoch() > 1 && !m.Exchanges {
		n.fault = SetElsewhere
		return m.Verdict(i)
	}
	switch {
	case has.Phase != SetRecorded:
	case (m.config == nil && has.Config.Stamp.Epoch() > 1 || m.follows(has)) && !m.room(has.Config):
		n.fault = SetFull
		return m.Verdict(i)
	case m.follows(has):
		m.follow(i, has.Config)
	case m.config == nil || has.Stamp().Compare(m.Stamp()) > 0 && has.Config.Stamp.Epoch() == m.config.Stamp.Epoch() && m.fits(has.Config):
		m.adopt(i, has.Config)
	}
	m.forget()
	was := m.wrong() >= 0
	if m.judge(i); !was && m.wrong() >= 0 {
		m.reconnect(i)
	}
	return m.Verdict(i)
}

// Outside returns the nodes, a bit for each, that are not known to be members.
//
// Invariant: a view that such a node has given lets no claim in. Without the
// rule a process with the list ABD has the vote of D, learns from A which set
// is recorded, and gets B's vote as a client of that set.
func (m *Membership) Outside() (nodes uint32) {
	for i := range m.nodes {
		if m.config != nil && !m.nodes[i].known {
			nodes |= 1 << i
		}
	}
	return nodes
}

// shows says that node i has an identity, if it is not empty.
//
// Invariant: what a server said that had no identity counts as that of a member
// only if the same run of a server shows the identity. Without the rule a
// client that starts meets an empty server at A's address and has its vote.
// Then the address leads to A, and B votes as well: it holds, beside a client
// that has A and C.
//
// A node that was restarted before its set is recorded looks the same. So what
// was said is not forgotten: it is that of a node that was not known to be a
// member, which lets no claim in, and which a holder keeps. Without that each
// hold is lost when a set is recorded that is in use.
func (m *Membership) shows(i int, identity string) {
	n := &m.nodes[i]
	if identity == "" {
		return
	}
	switch {
	case n.shown != "" && n.shown != identity:
		m.others |= 1 << i
	case n.mixed && m.rules.on(RuleSetBlank):
		m.doubts |= 1 << i
	}
	n.shown, n.blank, n.mixed = identity, false, false
}

// Others returns the nodes, a bit for each, that have become other members
// since it was called last: see Claim.Exclude. It is called after each event,
// before Config and Group are.
func (m *Membership) Others() (nodes uint32) {
	m.tell()
	nodes, m.others = m.others, 0
	return nodes
}

// Doubts returns the nodes, a bit for each, that have turned out to be members
// since it was called last, and of which it is not known that the same server
// said what was said before. To claims and operations each of them was outside
// until now: see Claim.Exclude. It is called after each event.
func (m *Membership) Doubts() (nodes uint32) {
	nodes, m.doubts = m.doubts, 0
	return nodes
}

// tell finds out which member each number stands for.
//
// Invariant: what counts on the nodes learns when a number stands for another
// member, also by a configuration that it knows. Without the rule C is to be
// replaced by D, and a client that has met neither finds D at C's address: D,
// which has no vote yet, votes as C.
func (m *Membership) tell() {
	if !m.exchanged() || !m.rules.on(RuleSetTell) {
		return
	}
	var stands [maxNodes]string
	for k, member := range m.config.Members {
		if j := m.slot(k); j < maxNodes {
			stands[j] = member.Identity
		}
	}
	changed := false
	for i := range min(len(m.nodes), maxNodes) {
		n, id := &m.nodes[i], stands[i]
		if n.told == id {
			continue
		}
		// Before the first exchange nothing is noted. What a number has said
		// then is that of the identity that it has shown last.
		if was := cmp.Or(n.stood, n.shown); id != "" && was != "" && was != id {
			m.others |= 1 << i
		}
		n.told, n.stood, changed = id, cmp.Or(id, n.stood), true
	}
	if changed && m.config == m.heard {
		c := *m.config
		m.config = &c
	}
	m.heard = m.config
}

// Judged reports whether what is known about node i is from after the set
// became known.
func (m *Membership) Judged(i int) bool { return !m.nodes[i].again }

// Has returns what node i has shown that it keeps, nil if it has shown nothing.
func (m *Membership) Has(i int) *NodeSet {
	n := &m.nodes[i]
	if !n.met {
		return nil
	}
	has := n.has
	return &has
}

// Verdict is what is known about node i.
func (m *Membership) Verdict(i int) SetVerdict {
	if w := m.wrong(); w >= 0 {
		return SetVerdict{Fault: SetWrong, Node: w, Shown: m.nodes[w].has.Identity, Set: m.config}
	}
	n := &m.nodes[i]
	asks := n.fault == SetLost && m.config != nil && m.word(-1)
	return SetVerdict{Fault: n.fault, Node: i, Other: n.other, Shown: n.has.Identity, Set: m.config, Asks: asks}
}

// Wrong returns why no node may be used, SetFits if they may.
func (m *Membership) Wrong() SetVerdict {
	if w := m.wrong(); w >= 0 {
		return m.Verdict(w)
	}
	return SetVerdict{}
}

// wrong returns a node because of which the list is another one than the set's,
// -1 if there is none.
func (m *Membership) wrong() int {
	if !m.rules.on(RuleSetList) {
		return -1
	}
	if m.exchanged() {
		return m.notFormer()
	}
	if m.config != nil && len(m.config.Members) != m.listed {
		return max(0, slices.IndexFunc(m.nodes, func(n setNode) bool { return n.has.Stamp() == m.config.Stamp }))
	}
	return slices.IndexFunc(m.nodes, func(n setNode) bool { return n.fault == SetWrong })
}

// Up says that the connection to node i is ready. It may have begun before the
// set became known.
func (m *Membership) Up(i int) {
	if m.nodes[i].again {
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Reconnect: true})
	}
	m.await()
}

// Down says that the connection to node i has ended.
func (m *Membership) Down(i int) {
	m.nodes[i].up = false
	m.await()
}

// Refused says that node i has refused a request for its configuration: the
// next connection shows which one it has.
//
// Invariant: the connection to a node that has no vote yet, and is known to
// have none, outlasts what the node refuses. Bootstrap needs that connection.
// Without the rule the claims of a busy client break it with each request, and
// the client never records its set.
func (m *Membership) Refused(i int) {
	n := &m.nodes[i]
	if waits := n.fault != SetFits && m.rules.on(RuleSetPatient); n.up && !n.again && !waits {
		n.again = true
		m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: i}, Reconnect: true})
	}
}

// Recorded says that this client has recorded the set of its list itself.
func (m *Membership) Recorded(r *Recording) {
	m.config = r.Config
	for i := range m.nodes {
		n := &m.nodes[i]
		n.place, n.known, n.fault, n.met = m.config.Member(r.identity(i)), true, SetFits, true
		n.has = NodeSet{Phase: SetRecorded, Config: m.config, Identity: r.identity(i)}
		m.shows(i, n.has.Identity)
	}
}

// adopt has the client count on a configuration. What the other nodes are is
// judged again.
func (m *Membership) adopt(by int, c *Configuration) {
	m.config = c
	for j := range m.nodes {
		m.nodes[j].place, m.nodes[j].known = -1, false
	}
	if c.Stamp.Epoch() > 1 {
		m.regroup(by)
		return
	}
	m.reconnect(by)
}

// reconnect has all nodes but one be judged again.
func (m *Membership) reconnect(but int) {
	for j := range m.nodes {
		if o := &m.nodes[j]; j != but && o.up && !o.again {
			o.again = true
			m.Out = append(m.Out, SetAction{RecordStep: RecordStep{Node: j}, Reconnect: true})
		}
	}
}

// fits reports whether a later configuration may be that of this list: each
// node is a member, or has not shown what it is.
func (m *Membership) fits(c *Configuration) bool {
	return len(c.Members) == m.listed && !slices.ContainsFunc(m.nodes, func(n setNode) bool {
		return n.up && n.has.Config != nil && c.Member(n.has.Identity) < 0
	})
}

// forget has the client count on no set any more: every node of its list has
// lost its data, and so would be used without a set by a client that starts
// now.
func (m *Membership) forget() {
	for i := range m.listed {
		if n := &m.nodes[i]; !n.up || n.has.Config != nil {
			return
		}
	}
	if m.config == nil || m.config.Stamp.Epoch() > 1 {
		return
	}
	m.config = nil
	for i := range m.nodes { // the nodes serve claims without an identity from here on
		n := &m.nodes[i]
		n.place, n.fault, n.shown, n.blank = -1, SetFits, "", true
	}
}
