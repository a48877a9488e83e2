package nodeset

import (
	"slices"
)

// How a set is recorded: by all nodes of a list, or by none.
//
//	promise -----------------> accept ---------------> commit ---------> recorded
//	all nodes, no other set    all nodes               all nodes
//
// It is Paxos whose quorum is all nodes of a list. Two lists with a common node
// cannot both succeed: that node only accepts the one with the later promise. A
// majority is not enough: ABC would be recorded by A and C, and ABD by B and D.
//
// A node that has accepted a set serves no request until all have, so no claim
// of another list gets a vote there. A set that most of its members have
// forgotten is recorded again in the same way, by all of its members.

// RecordKind is what a node is asked for.
type RecordKind uint8

const (
	SetPromise RecordKind = iota + 1 // accept nothing lower
	SetAccept                        // accept this configuration, unless a higher promise was given, and serve nothing
	SetCommit                        // all nodes have accepted it: its guard time begins, unless the node is Ready
	SetRestore                       // a blank node gets back what it was: its guard time begins
	SetMove                          // a member serves a later configuration from here on
	SetLife                          // a blank node keeps a random word until it loses its data
	SetRetire                        // a node that was a member keeps the configuration that followed, and serves nothing
)

func (k RecordKind) String() string {
	return [...]string{"?", "promise", "accept", "commit", "restore", "move", "life", "retire"}[k]
}

// RecordStep is one request to one node.
type RecordStep struct {
	Node     int
	Kind     RecordKind
	Ballot   Ballot
	Identity string         // of that node
	Config   *Configuration // nil with SetPromise and SetLife
	Seen     string         // of SetRestore: nothing is done unless the node still keeps that
	Life     string         // of SetLife: the word, which the runtime makes
	Ready    bool           // of SetCommit: an operator has declared the node brand-new: it votes at once if Ballot is what it has accepted last, and else does nothing
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

const (
	RecordGoesOn     RecordOutcome = iota
	RecordDone                     // all nodes have recorded Config
	RecordSuperseded               // another client records a set at the same moment, or a node has changed
	RecordOther                    // Node is of another set, Config
	RecordTwice                    // Node is Other, a node of the list, under a second address
)

// Recording records a set. It is not safe for concurrent use.
// Invariant: no step of a phase is in Out before all nodes have answered the
// phase before.
type Recording struct {
	Out     []RecordStep
	Outcome RecordOutcome
	Config  *Configuration
	Node    int  // of RecordOther and RecordTwice
	Other   int  // of RecordTwice
	Begun   bool // of RecordOther: Node has accepted Config, and it is recorded nowhere that is known

	again   bool // Config was recorded before: nothing else is proposed
	ready   bool
	ballot  Ballot
	phase   RecordKind
	addrs   []string
	at      []int    // by address: the connection
	runs    []string // by address, of the server as the recording began; empty: another one was met since
	blank   bool     // a node had accepted nothing as it promised
	answers []*NodeSet
	kept    map[string]bool // identities of nodes that are known to have recorded Config
}

// Again reports whether it records a set again, and proposes nothing new.
func (r *Recording) Again() bool { return r.again }

func (r *Recording) ask(kind RecordKind) {
	was := r.answers
	r.phase, r.answers = kind, make([]*NodeSet, len(r.addrs))
	for i := range r.addrs {
		s := RecordStep{Node: r.at[i], Kind: kind, Ballot: r.ballot}
		if kind != SetPromise {
			s.Config, s.Identity, s.Ready = r.Config, r.identity(i), r.ready
		}
		if kind == SetAccept && was[i] != nil && was[i].Phase == SetRecorded { // it remembers the set, and may be behind
			s.Kind = SetMove
		}
		r.Out = append(r.Out, s)
	}
}

// Answer says what a node keeps after a step.
func (r *Recording) Answer(s RecordStep, has NodeSet) {
	if r.Outcome != RecordGoesOn || s.Kind != r.phase && !(s.Kind == SetMove && r.phase == SetAccept) {
		return
	}
	r.keeps(has)
	heard := 0
	for i, at := range r.at {
		if at == s.Node {
			r.answers[i] = &has
		}
		if r.answers[i] != nil {
			heard++
		}
	}
	need := len(r.addrs) //mutant:RuleSetAll=len(r.addrs)/2 + 1
	if heard < need {
		return
	}
	switch r.phase {
	case SetPromise:
		r.promised()
	case SetAccept:
		r.accepted()
	case SetCommit:
		r.Outcome = RecordSuperseded
		if r.all(func(a *NodeSet) bool { return a.Stamp() == r.Config.Stamp && a.Phase == SetRecorded }) {
			r.Outcome = RecordDone
		}
	}
}

// keeps notes a node that has recorded Config.
func (r *Recording) keeps(has NodeSet) {
	if has.Phase == SetRecorded && has.Stamp() == r.Config.Stamp {
		if r.kept == nil {
			r.kept = map[string]bool{}
		}
		r.kept[has.Identity] = true
	}
}

// met notes which run of a server a connection has reached before all nodes
// have accepted. What the server answered before may be forgotten by then.
func (r *Recording) met(at int, run string) {
	if at >= 0 && r.runs[at] != run {
		r.runs[at] = ""
	}
}

// accepted goes on once all nodes have answered.
// Invariant: the operator's word is given on only to nodes that have kept all
// that they did. A node that has its commit from another client may have voted.
// One that had accepted nothing as it promised, or is another run of the server
// since, may have forgotten that.
func (r *Recording) accepted() {
	recorded := !r.all(func(a *NodeSet) bool { return a.Phase != SetRecorded })
	for i, a := range r.answers {
		switch {
		case a == nil:
		case a.Stamp() != r.Config.Stamp || a.Phase != SetRecorded && a.Accepted != r.ballot,
			r.ready && (recorded && r.blank || a.Run != r.runs[i]):
			r.Outcome = RecordSuperseded
			return
		case a.Identity != r.identity(i):
			r.Outcome, r.Node, r.Other = RecordTwice, r.at[i], r.at[max(0, r.Config.Member(a.Identity))]
			return
		}
	}
	r.ask(SetCommit)
}

func (r *Recording) all(ok func(a *NodeSet) bool) bool {
	return !slices.ContainsFunc(r.answers, func(a *NodeSet) bool { return a != nil && !ok(a) })
}

// promised decides what is proposed, once all nodes have answered.
// Invariant: what a node has accepted, and may have been recorded by all nodes
// of its list, is proposed again or nothing is. Nothing is proposed to a list
// that is known to have a server twice: it cannot be recorded, and what accepts
// it takes no other one.
func (r *Recording) promised() {
	if i, j := r.twice(); i >= 0 {
		r.Outcome, r.Node, r.Other = RecordTwice, r.at[j], r.at[i]
		return
	}
	var accepted *NodeSet
	for i, a := range r.answers {
		r.blank = r.blank || a != nil && a.Config == nil
		switch {
		case a == nil:
		case a.Promised > r.ballot: //mutant:RuleSetPromised
			r.Outcome = RecordSuperseded
			return
		case a.Phase == SetRecorded && !r.again && r.same(a.Config): // another client has just recorded this list
			r.Outcome = RecordSuperseded
			return
		case a.Phase == SetRecorded:
			if !r.again || !a.Config.Kin(r.Config) || a.Identity != r.identity(i) || a.Stamp().Compare(r.Config.Stamp) > 0 {
				r.Outcome, r.Node, r.Config = RecordOther, r.at[i], a.Config
				return
			}
		case a.Config == nil || a.Stamp() == r.Config.Stamp || r.void(a.Config):
		case r.again || !r.same(a.Config):
			r.Outcome, r.Node, r.Config, r.Begun = RecordOther, r.at[i], a.Config, true
			return
		case accepted == nil || a.Accepted > accepted.Accepted:
			accepted = a
		}
	}
	if accepted != nil { //mutant:RuleSetAccepted
		r.Config = accepted.Config
	}
	r.ask(SetAccept)
}

// twice returns the indices of two addresses whose servers told of the same run,
// or -1.
func (r *Recording) twice() (one, other int) {
	for j, b := range r.answers {
		i := slices.IndexFunc(r.answers[:j], func(a *NodeSet) bool { return a != nil && b != nil && a.Run != "" && a.Run == b.Run })
		if i >= 0 {
			return i, j
		}
	}
	return -1, -1
}

// void reports whether an accepted configuration cannot be recorded any more: a
// node of its list remembers this set.
func (r *Recording) void(c *Configuration) bool {
	for i, a := range r.answers {
		if a != nil && a.Phase == SetRecorded && !a.Config.Kin(c) && c.Place(r.addrs[i]) >= 0 { //mutant:RuleSetVoid
			return true
		}
	}
	return false
}

func (r *Recording) identity(i int) string {
	return r.Config.Members[r.Config.Place(r.addrs[i])].Identity
}

// same reports whether a configuration is of this list.
func (r *Recording) same(c *Configuration) bool {
	return len(c.Members) == len(r.addrs) && !slices.ContainsFunc(r.addrs, func(a string) bool { return c.Place(a) < 0 })
}
