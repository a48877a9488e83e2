// Package operator changes the set of nodes of a client. Package change decides
// the steps, and this package carries them out on the servers. It is imported
// by package members and by the command, but not by programs that only use
// locks.
package operator

// The parameters, the progress and the error of Run, and the state of one call.

import (
	"time"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/setup"
)

// Exchange is a change of the nodes of a set.
type Exchange struct {
	Add      []string // as ParseNodes takes them; the new nodes are empty servers
	Remove   []string // addresses of members, or URLs that name them
	Move     []Move
	Shared   *nodeset.Shared // what is not 0 is to be the set's
	Undo     bool            // what is under way is given up; all else is empty
	Progress func(Progress)

	// Allow is called once with the set as it is, before anything is done. Run
	// returns its error. nil: all is allowed.
	Allow func(c *nodeset.Configuration, ends Ends) error
}

// Ends is what a change may end.
type Ends struct {
	Smaller bool          // holds that have a majority only with the nodes that leave
	Silent  time.Duration // all holds, and for so long no lock is given; see silence
}

// Move gives a member another address. With Keep, the member keeps its earlier
// addresses as well.
type Move struct {
	From, To string
	Keep     bool
}

// Progress is the progress of an exchange. It is reported whenever it changes.
type Progress struct {
	Epoch uint64
	Stage string        // stable, learning or joint
	Await string        // what is waited for; empty: nothing
	Left  time.Duration // how long that takes at least
}

// Error says why an exchange was not carried out, and the state of the set.
type Error struct {
	Why   error
	State string
}

func (e *Error) Error() string { return e.Why.Error() + "; " + e.State }

// Unwrap returns why.
func (e *Error) Unwrap() error { return e.Why }

// exchange is one call of Run. Only its caller's goroutine uses it, so it needs
// no lock. What the goroutines of a round use of it does not change.
type exchange struct {
	q      *core.Quorum
	set    setup.Settings
	ask    Exchange
	o      change.Operator
	before *nodeset.Configuration // the first that the call has counted on
	goal   change.Goal
	shown  Progress // the last one
	offers []func(stays bool)
	stood  []*nodeset.Member // see stand
}

// config returns the configuration that the client counts on, or nil.
func (x *exchange) config() *nodeset.Configuration { return x.q.Members.Config.Load() }
