package protocol

// This file owns what a report says of the set: which configuration it is
// about, and how each node stands to it.

// SetStanding is how a node stands to the set that a report is about.
type SetStanding uint8

// The standings.
const (
	StandsUnknown  SetStanding = iota // it has not shown what it keeps
	StandsWithout                     // it keeps no configuration
	StandsPromised                    // and it has promised a recording that has not reached it further
	StandsAccepted                    // it has accepted the configuration, which it does not know to be recorded
	StandsMember                      // it has recorded it
	StandsOther                       // it keeps another configuration
)

func (s SetStanding) String() string {
	return [...]string{"", "none", "promised", "accepted", "member", "other"}[s]
}

// SetReport is what the nodes show of their set.
type SetReport struct {
	Config   *Configuration // nil: no node keeps one
	Recorded bool
	Half     bool // a recording was begun and has not ended
	Standing []SetStanding
}

// ReportSet returns what nodes show that keep has, nil for a node that has not
// shown it. counted is what the client counts on, nil for none.
//
// Invariant: Recorded is true only if a node says so, or the client has seen
// one that did. A configuration that is accepted may be replaced by another
// one.
func ReportSet(counted *Configuration, has []*NodeSet) SetReport {
	r := SetReport{Config: counted, Recorded: counted != nil, Standing: make([]SetStanding, len(has))}
	var top *NodeSet
	// A client that counts on no set yet reports the latest one that any node
	// shows, so that an operator sees what a list is refused for.
	for _, n := range has {
		if n != nil && n.Config != nil && (top == nil || n.later(top)) {
			top = n
		}
	}
	if counted == nil && top != nil {
		r.Config, r.Recorded = top.Config, top.Phase == SetRecorded
	}
	for i, n := range has {
		switch {
		case n == nil:
		case n.Config == nil && n.Promised != "":
			r.Standing[i] = StandsPromised
		case n.Config == nil:
			r.Standing[i] = StandsWithout
		case n.Stamp() != r.Config.Stamp:
			r.Standing[i] = StandsOther
		case n.Phase == SetRecorded:
			r.Standing[i] = StandsMember
		default:
			r.Standing[i] = StandsAccepted
		}
		r.Half = r.Half || r.Standing[i] == StandsPromised || r.Standing[i] == StandsAccepted
	}
	return r
}
