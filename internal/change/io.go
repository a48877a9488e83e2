package change

import (
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// IO asks the members for a call of an operator. Each method waits for its
// answer, for a bounded time. Once the call is stopped no method waits any
// more, and what it returns does not count.
type IO interface {
	Now() protocol.Time
	// Config returns what the client counts on now, nil if every node of its
	// list has lost its data.
	Config() *nodeset.Configuration
	// Ballot returns one of now.
	Ballot() nodeset.Ballot
	// Look reads a member's marker as one of a configuration and, with disk,
	// what the member says of its disk.
	Look(m nodeset.Member, of nodeset.Stamp, disk bool) MemberLook
	// Snapshot has a member write a snapshot. again means that the last one
	// that this call has had written has failed.
	Snapshot(m nodeset.Member, again bool) Persistence
	// Succeed carries out a Succession. The client counts on what is decided,
	// as on what a node shows. It returns why members have refused for good, by
	// their places in the configuration.
	Succeed(s *Succession) (refusals []error)
	// Report says how far the change has come. It does not wait.
	Report(p OperatorProgress)
	// Each calls f for each k below n, all at the same time, and waits for all
	// of them. Each call asks by an IO of its own.
	Each(n int, f func(io IO, k int))
	// Sleep waits until a time.
	Sleep(until protocol.Time)
	// Stopped reports whether the call is stopped: the caller waits no longer,
	// or the time of Within is over.
	Stopped() bool
	// Within calls f with an IO that is stopped after the time d, and not as
	// the caller waits no longer.
	Within(d time.Duration, f func(io IO))
}

// MemberLook is what a look has shown. A node that does not serve the
// configuration has no key of its stamp: it is silent, and what it says of an
// earlier configuration never counts for this one (rule 16).
type MemberLook struct {
	Silent   bool
	Refused  error         // why it refuses for good; nil: it does not
	Wait     time.Duration // of its guard time
	CaughtUp bool
	Disk     Persistence
}
