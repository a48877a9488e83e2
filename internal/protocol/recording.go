package protocol

import "slices"

// This file owns how the first configuration of a set is recorded: by all nodes
// of the list, or by none.
//
//	promise -----------------> accept ---------------> commit ---------> recorded
//	all nodes, no other set    all nodes               all nodes
//
// It is Paxos whose quorum is all nodes of a list. Two lists with a common node
// cannot both succeed: that node accepts the one with the later promise only. A
// majority is not enough: ABC would be recorded by A and C, and ABD by B and D.
//
// A node refuses all requests that count on another configuration from its
// acceptance on. So no claim of another list gets a vote there once the set
// counts.
//
// A set that is recorded, and that most members have forgotten, comes back in
// the same way: each node of the list that has none regains it, or none does.

// RecordKind is what a node is asked for while a set is recorded.
type RecordKind uint8

// The kinds of a RecordStep.
const (
	SetPromise RecordKind = iota + 1 // accept nothing lower
	SetAccept                        // accept this configuration, unless a higher promise was given
	SetCommit                        // all nodes have accepted it
	SetRestore                       // a node that lost its data gets back what it was
	SetMove                          // a member serves a later configuration from here on
	SetRegain                        // SetAccept for a node that lost its data: it serves no request before SetCommit, when its guard time begins
	SetLife                          // a node without a set keeps a random word until it loses its data
)

func (k RecordKind) String() string {
	return [...]string{"?", "promise", "accept", "commit", "restore", "move", "regain", "life"}[k]
}

// RecordStep is one request to one node.
type RecordStep struct {
	Node     int
	Kind     RecordKind
	Ballot   Ballot
	Identity string         // of that node, with SetAccept and SetRestore
	Config   *Configuration // nil with SetPromise and SetLife
	Seen     string         // of SetRestore: nothing is done unless the node still keeps that
	Life     string         // of SetLife: the word, which the runtime makes
}

// Enters reports whether the node begins to count with the step, beside those
// that did before. It may lack what these record meanwhile, so it is not caught
// up.
func (s *RecordStep) Enters() bool {
	if s.Kind != SetMove || s.Config.Stage != Jointly {
		return false
	}
	at := s.Config.Member(s.Identity)
	return at >= 0 && s.Config.Members[at].Role == Enters
}

// RecordOutcome is how a Recording stands.
type RecordOutcome uint8

// The outcomes.
const (
	RecordGoesOn     RecordOutcome = iota
	RecordDone                     // all nodes have recorded Config
	RecordSuperseded               // another client records a set at the same moment
	RecordOther                    // Node is of another set, Config
	RecordSilent                   // a node has not answered
	RecordAlready                  // the set of this list had been recorded, as Config
	RecordTwice                    // Node is Other, a node of the list, under a second address
	RecordForgotten                // what the set was is not known well enough to give it back
)

// Recording records the set of a list. It is not safe for concurrent use.
//
// Invariant: no step of a phase is in Out before all nodes have answered the
// phase before.
type Recording struct {
	Out     []RecordStep
	Outcome RecordOutcome
	Config  *Configuration
	Node    int // of RecordOther and RecordTwice
	Other   int // of RecordTwice

	regains bool // nothing new is proposed
	before  bool // Config had been recorded before
	rules   Rules
	ballot  Ballot
	phase   RecordKind
	addrs   []string
	at      []int // by address: which node of the client it is; nil: the nodes are in this order
	answers []*NodeSet
	shown   []string // by address: the identity that it has in Config already
}

// NewRecording returns a Recording of proposal, whose members are the nodes of
// the list in order.
func NewRecording(proposal *Configuration, ballot Ballot, rules Rules) *Recording {
	r := &Recording{rules: rules, ballot: ballot, Config: proposal, addrs: proposal.Addrs(), shown: make([]string, len(proposal.Members))}
	r.ask(SetPromise)
	return r
}

// newRegaining returns a Recording that proposes nothing new. The nodes that
// have lost their data get back the set that the others say. at says which
// nodes the members of c are, nil if c is the client's list.
func newRegaining(c *Configuration, at []int, ballot Ballot, rules Rules) *Recording {
	r := &Recording{regains: true, rules: rules, ballot: ballot, Config: c, addrs: c.Addrs(), at: at, shown: make([]string, len(c.Members))}
	r.ask(SetPromise)
	return r
}

// Regains reports whether it gives a set back, and proposes nothing new.
func (r *Recording) Regains() bool { return r.regains }

// ask puts the requests of a phase into Out.
func (r *Recording) ask(kind RecordKind) {
	r.phase, r.answers = kind, make([]*NodeSet, len(r.addrs))
	for i := range r.addrs {
		s := RecordStep{Node: r.node(i), Kind: kind, Ballot: r.ballot}
		if kind != SetPromise {
			s.Config, s.Identity = r.Config, r.identity(i)
		}
		r.Out = append(r.Out, s)
	}
}

// node returns which node an address is.
func (r *Recording) node(i int) int {
	if r.at == nil {
		return i
	}
	return r.at[i]
}

// Answer says what a node keeps after a step.
func (r *Recording) Answer(s RecordStep, has NodeSet) {
	if r.Outcome != RecordGoesOn || s.Kind != r.phase {
		return
	}
	for i := range r.addrs {
		if r.node(i) == s.Node {
			r.answers[i] = &has
		}
	}
	need := len(r.addrs)
	if !r.rules.on(RuleSetAll) {
		need = need/2 + 1
	}
	heard := 0
	for _, a := range r.answers {
		if a != nil {
			heard++
		}
	}
	if heard < need {
		return
	}
	switch r.phase {
	case SetPromise:
		r.promised()
	case SetAccept, SetRegain:
		r.accepted()
	case SetCommit:
		r.Outcome = RecordSuperseded
		if r.all(func(a *NodeSet) bool { return a.Stamp() == r.Config.Stamp && a.Phase == SetRecorded }) {
			r.Outcome = RecordDone
			if r.before {
				r.Outcome = RecordAlready
			}
		}
	}
}

// accepted goes on once all nodes have answered.
func (r *Recording) accepted() {
	for i, a := range r.answers {
		switch {
		case a == nil:
		case a.Stamp() != r.Config.Stamp || a.Phase != SetRecorded && a.Accepted != r.ballot:
			r.Outcome = RecordSuperseded
			return
		case a.Identity != r.identity(i):
			r.Outcome, r.Node, r.Other = RecordTwice, r.node(i), r.node(r.place(a.Identity))
			return
		}
	}
	r.ask(SetCommit)
}

func (r *Recording) all(ok func(a *NodeSet) bool) bool {
	return !slices.ContainsFunc(r.answers, func(a *NodeSet) bool { return a != nil && !ok(a) })
}

// promised decides what is proposed, once all nodes have answered.
//
// Invariant: what a node has accepted, and may have been recorded by all nodes
// of its list, is proposed again or nothing is. Without the rule a client that
// has seen it recorded counts on it, while the others count on what is proposed
// instead.
func (r *Recording) promised() {
	var accepted *NodeSet
	outrun := false
	for i, a := range r.answers {
		if a == nil {
			continue
		}
		outrun = outrun || a.Promised > r.ballot
		switch {
		case a.Config == nil || r.regains && a.Phase == SetAccepted && a.Config.Kin(r.Config) && a.Stamp() != r.Config.Stamp:
		case !r.same(a.Config):
			r.Outcome, r.Node, r.Config = RecordOther, r.node(i), a.Config
			return
		case accepted == nil || a.later(accepted):
			accepted = a
		}
	}
	forgotten := accepted != nil && (accepted.Regains || accepted.Phase == SetRecorded && !r.enough(accepted))
	switch {
	case r.regains && (accepted == nil || accepted.Phase == SetAccepted && !accepted.Regains), forgotten && accepted.Config.Stage != Stable:
		r.Outcome = RecordForgotten
	case forgotten && r.rules.on(RuleSetRegain):
		if r.before = true; outrun && r.rules.on(RuleSetPromised) {
			r.Outcome = RecordSuperseded
			return
		}
		r.adopt(accepted.Config)
		r.ask(SetRegain)
	case accepted != nil && accepted.Phase == SetRecorded:
		r.Outcome = RecordAlready
		r.adopt(accepted.Config)
		r.complete()
	case outrun && r.rules.on(RuleSetPromised):
		r.Outcome = RecordSuperseded
	default:
		if accepted != nil && r.rules.on(RuleSetAccepted) {
			r.adopt(accepted.Config)
		}
		r.ask(SetAccept)
	}
}

// enough reports whether a majority of those that decide what follows says that
// this set is recorded, or no node has lost what it had.
//
// Invariant: fewer give no node its place back before all nodes of the list
// have accepted that. The others may be a member of another set each, which
// gives them their places in the same way. Without the rule A gives B its place
// in the set ABC, and D gives C its place in the set BCD: both sets have a
// majority.
func (r *Recording) enough(of *NodeSet) bool {
	say, all := 0, 0
	for _, m := range of.Config.Members {
		if m.Role == Enters {
			continue
		}
		all++
		if slices.ContainsFunc(r.answers, func(a *NodeSet) bool {
			return a != nil && a.Stamp() == of.Stamp() && a.Phase == SetRecorded && a.Identity == m.Identity
		}) {
			say++
		}
	}
	return say >= all/2+1 || r.all(func(a *NodeSet) bool { return a.Config != nil && !a.Regains })
}

// later reports whether what a node has comes before what another one has.
func (n *NodeSet) later(o *NodeSet) bool {
	if n.Phase != o.Phase {
		return n.Phase > o.Phase
	}
	if n.Phase == SetRecorded {
		return n.Stamp().Compare(o.Stamp()) > 0
	}
	return n.Accepted > o.Accepted
}

// adopt has a configuration be what is recorded.
func (r *Recording) adopt(c *Configuration) {
	r.Config = c
	for i, a := range r.answers {
		if a != nil && a.Stamp() == c.Stamp {
			r.shown[i] = a.Identity
		}
	}
}

// identity returns which member of Config a node is.
func (r *Recording) identity(i int) string {
	if r.shown[i] != "" {
		return r.shown[i]
	}
	return r.Config.Members[r.Config.Place(r.addrs[i])].Identity
}

// place returns the index of the address whose node has an identity, 0 for an
// identity that this recording does not know.
func (r *Recording) place(identity string) int {
	for i := range r.addrs {
		if r.identity(i) == identity {
			return i
		}
	}
	return 0
}

// complete brings a set that is recorded to the nodes of the list that lack it.
func (r *Recording) complete() {
	for i, a := range r.answers {
		s := RecordStep{Node: r.node(i), Config: r.Config, Identity: r.identity(i)}
		switch {
		case a == nil:
			continue
		case a.Stamp() != r.Config.Stamp:
			s.Kind, s.Seen = SetRestore, a.Text
		case a.Phase == SetAccepted:
			s.Kind = SetCommit
		default:
			continue
		}
		r.Out = append(r.Out, s)
	}
}

// same reports whether a configuration is of this list: each node is a member,
// or is where one was.
func (r *Recording) same(c *Configuration) bool {
	if len(c.Members) != len(r.addrs) {
		return false
	}
	for i, a := range r.answers {
		if (a == nil || a.Stamp() != c.Stamp) && c.Place(r.addrs[i]) < 0 {
			return false
		}
	}
	return true
}
