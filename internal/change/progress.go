package change

import (
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// The progress of a change: what it waits for, and how the call has ended.

// OperatorAwait is what a change waits for.
type OperatorAwait uint8

// What may be awaited.
const (
	AwaitNothing  OperatorAwait = iota
	AwaitAnswers                // of nodes that enter: see Exchange.Awaits
	AwaitLearnt                 // the new nodes take in what the others have
	AwaitPlaces                 // holders get their places at the nodes that stay
	AwaitLeases                 // leases end that only the old nodes know
	AwaitServed                 // a majority serves the set
	AwaitFollowed               // clients follow: see Exchange.Follows
)

// OperatorProgress is how far a change has come.
type OperatorProgress struct {
	Config *nodeset.Configuration
	Await  OperatorAwait
	Silent []string      // addresses, of AwaitAnswers
	Left   time.Duration // how long what is awaited takes at least; 0: it is not known
}

// OperatorEnd is how a call of an operator has ended.
type OperatorEnd uint8

// The ends.
const (
	OperatorGoesOn  OperatorEnd = iota
	OperatorDone                // the set is as wanted, or is as before if that was wanted
	OperatorUndone              // the change was given up: see Why
	OperatorUnfit               // the change makes no sense for the set
	OperatorBlocked             // nothing can be decided: so many of the members refuse for good
	OperatorLeft                // it was given up, and the set is left as it is
)

// OperatorWhy is why a change was given up.
type OperatorWhy uint8

// The reasons.
const (
	WhyAnother OperatorWhy = iota // another client has undone the change
	WhySilent                     // Member enters and has been silent for Away
	WhyRefused                    // Member refuses for good
	WhyStopped                    // the caller has
)

// progress returns what is waited for before next, nil if that is not known
// yet. guard is the longest guard time of a node that enters. A new node that
// does not answer comes before all else: an operator can start it. The rest
// passes with time.
func (e *Exchange) progress(now protocol.Time, next *nodeset.Configuration,
	guard time.Duration) OperatorProgress {
	p, enters := OperatorProgress{Config: e.config}, false
	for k, m := range e.config.Members {
		if enters = enters || m.Role == nodeset.Enters; e.Awaits(k) {
			p.Silent = append(p.Silent, m.Addr)
		}
	}
	switch {
	case next != nil:
	case len(p.Silent) > 0:
		p.Await = AwaitAnswers
	case e.config.Stage == nodeset.Learning && enters:
		p.Await, p.Left = AwaitLearnt, guard
	case e.config.Stage == nodeset.Learning:
		p.Await, p.Left = AwaitPlaces, e.Left(now)
	case e.config.Stage == nodeset.Jointly:
		p.Await, p.Left = AwaitLeases, e.Left(now)
	case e.Follows(now) > 0:
		p.Await, p.Left = AwaitFollowed, e.Follows(now)
	default:
		p.Await = AwaitServed
	}
	return p
}
