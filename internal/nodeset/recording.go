package nodeset

import (
	"slices"
)

// How a set is recorded: by all nodes of a list, or by none. A client asks all
// nodes three questions, one after the other, and goes on once all have answered.
//
//	promise -----------------> accept ---------------> commit ---------> recorded
//	all nodes, no other set    all nodes               all nodes
//
// For example, two clients start with the brand-new nodes A, B and C:
//
//	x asks A, B and C for a promise at ballot 5. All give it, and show no set.
//	y asks at ballot 7. All give it: they accept nothing below 7 any more.
//	x asks them to accept its set. All refuse, so x is superseded, and gives up.
//	y asks them to accept its set. A and B do. C restarts, and does not answer,
//	  so y gives up. A and B serve nothing now, since C may be of another set.
//	x tries again, at ballot 8. A and B show the set of y with their promises, so
//	  that is what x asks all to accept. All do, and the set can only be this one.
//	x has all commit it. They serve it from then on, and their guard times begin.
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
	// Accept this configuration, unless a higher promise was given, and serve
	// nothing.
	SetAccept
	SetCommit  // all nodes have accepted it: its guard time begins, unless the node is Ready
	SetRestore // a blank node gets back what it was: its guard time begins
	SetMove    // a member serves a later configuration from here on
	SetLife    // a blank node keeps a random word until it loses its data
	SetRetire  // a node that was a member keeps the configuration that followed, and serves nothing
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
	// Of SetCommit: an operator has declared the node brand-new: it votes at
	// once if Ballot is the last one it accepted; otherwise it does nothing.
	Ready bool
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
	RecordUnanswered               // a node has not answered
	RecordSuperseded               // another client records a set at the same moment, or a node has changed
	RecordOther                    // Node is of another set, Config
	RecordTwice                    // Node is Other, a node of the list, under a second address
)

// Recording is one attempt of this client to record a set. Recorder.Record makes
// it. The runtime then carries its questions to the nodes, and Membership.Next
// takes the answers, until Outcome is not RecordGoesOn any more. It is not safe
// for concurrent use.
type Recording struct {
	Outcome RecordOutcome
	Config  *Configuration
	Node    int  // of RecordOther and RecordTwice
	Other   int  // of RecordTwice
	Begun   bool // of RecordOther: Node has accepted Config, and it is recorded nowhere that is known

	// Most members of Config have forgotten it, so Config is recorded once more,
	// by all of its members. Nothing else may be recorded instead: the members
	// that remember it may have granted leases. If false, this is a new set of
	// the client's list, and what a node has already accepted is proposed instead.
	Forgotten bool

	ready    bool // an operator has declared the nodes brand-new
	ballot   Ballot
	promised Ballot     // the highest ballot that a node has reported
	phase    RecordKind // of the latest question
	addrs    []string
	at       []int    // by address: the connection
	runs     []string // by address, of the server as the recording began; empty: another one was met since
	blank    bool     // a node had accepted nothing as it promised
	answers  []recordAnswer
	kept     map[string]bool // identities of nodes that are known to have recorded Config
}

// recordAnswer is what the node at an address has answered to the latest
// question.
type recordAnswer struct {
	i int // of the address
	NodeSet
}

// ask returns the next question.
func (r *Recording) ask(kind RecordKind) []RecordStep {
	r.phase = kind
	steps := make([]RecordStep, len(r.at))
	for i, at := range r.at {
		steps[i] = RecordStep{Node: at, Kind: kind, Ballot: r.ballot}
		if kind != SetPromise {
			steps[i].Config, steps[i].Identity, steps[i].Ready = r.Config, r.identity(i), r.ready
		}
	}
	for _, a := range r.answers {
		if kind == SetAccept && a.Phase == SetRecorded { // it remembers the set, and may be behind
			steps[a.i].Kind = SetMove
		}
	}
	return steps
}

// next takes the answers to the latest question, and returns the next one, or
// nothing once the recording is over: see Membership.Next.
func (r *Recording) next(answers []*NodeSet) []RecordStep {
	r.answers = nil
	for i, has := range answers {
		if has != nil {
			r.keeps(*has)
			r.promised = max(r.promised, has.Promised)
			r.answers = append(r.answers, recordAnswer{i, *has})
		}
	}
	need := len(r.at) //mutant:RuleSetAll=len(r.at)/2 + 1
	switch {
	case len(r.answers) < need:
		r.Outcome = RecordUnanswered
	case r.phase == SetPromise && r.promises():
		return r.ask(SetAccept)
	case r.phase == SetAccept && r.accepted():
		return r.ask(SetCommit)
	case r.phase == SetCommit && r.committed():
		r.Outcome = RecordDone
	}
	return nil
}

// ends ends the recording without a set that it has recorded.
func (r *Recording) ends(as RecordOutcome) (goesOn bool) {
	r.Outcome = as
	return false
}

// promises decides what is proposed, once all nodes have given their promises.
// Invariant: what a node has accepted, and may have been recorded by all nodes
// of its list, is proposed again or nothing is. Nothing is proposed to a list
// that is known to have a server twice: it cannot be recorded, and what accepts
// it takes no other one.
func (r *Recording) promises() (goesOn bool) {
	runs := make([]string, len(r.at))
	for _, a := range r.answers {
		runs[a.i] = a.Run
	}
	if i, j := sameRun(runs); i >= 0 {
		r.Node, r.Other = r.at[j], r.at[i]
		return r.ends(RecordTwice)
	}
	var accepted recordAnswer
	for _, a := range r.answers {
		r.blank = r.blank || a.Config == nil
		switch {
		case a.Promised > r.ballot: //mutant:RuleSetPromised
			return r.ends(RecordSuperseded)
		case a.Phase == SetRecorded && !r.Forgotten && r.same(a.Config):
			// Another client has just recorded this list.
			return r.ends(RecordSuperseded)
		case a.Phase == SetRecorded:
			if !r.Forgotten || !a.Config.Kin(r.Config) || a.Identity != r.identity(a.i) ||
				a.Stamp().Compare(r.Config.Stamp) > 0 {
				r.Node, r.Config = r.at[a.i], a.Config
				return r.ends(RecordOther)
			}
		case a.Config == nil || a.Stamp() == r.Config.Stamp || r.void(a.Config):
		case r.Forgotten || !r.same(a.Config):
			r.Node, r.Config, r.Begun = r.at[a.i], a.Config, true
			return r.ends(RecordOther)
		case a.Accepted > accepted.Accepted:
			accepted = a
		}
	}
	if accepted.Config != nil { //mutant:RuleSetAccepted
		r.Config = accepted.Config
	}
	return true
}

// accepted reports whether all nodes have accepted Config.
// Invariant: the operator's word is given on only to nodes that have kept all
// that they did. A node that has its commit from another client may have voted.
// One that had accepted nothing as it promised, or is another run of the server
// since, may have forgotten that.
func (r *Recording) accepted() (goesOn bool) {
	recorded := slices.ContainsFunc(r.answers, func(a recordAnswer) bool { return a.Phase == SetRecorded })
	for _, a := range r.answers {
		switch {
		case a.Stamp() != r.Config.Stamp || a.Phase != SetRecorded && a.Accepted != r.ballot,
			r.ready && (recorded && r.blank || a.Run != r.runs[a.i]):
			return r.ends(RecordSuperseded)
		case a.Identity != r.identity(a.i):
			r.Node, r.Other = r.at[a.i], r.at[max(0, r.Config.Member(a.Identity))]
			return r.ends(RecordTwice)
		}
	}
	return true
}

// committed reports whether all nodes have recorded Config.
func (r *Recording) committed() bool {
	for _, a := range r.answers {
		if a.Stamp() != r.Config.Stamp || a.Phase != SetRecorded {
			return r.ends(RecordSuperseded)
		}
	}
	return true
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

// sameRun returns the indices of two servers that tell of the same run, so they
// are one server, or -1. An empty run is not known.
func sameRun(runs []string) (one, other int) {
	for j, run := range runs {
		if i := slices.Index(runs[:j], run); i >= 0 && run != "" {
			return i, j
		}
	}
	return -1, -1
}

// void reports whether an accepted configuration cannot be recorded any more: a
// node of its list remembers this set.
func (r *Recording) void(c *Configuration) bool {
	for _, a := range r.answers {
		if a.Phase == SetRecorded && !a.Config.Kin(c) && c.Place(r.addrs[a.i]) >= 0 { //mutant:RuleSetVoid
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
	return len(c.Members) == len(r.addrs) && !slices.ContainsFunc(r.addrs,
		func(a string) bool { return c.Place(a) < 0 })
}
