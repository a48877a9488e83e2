package protocol

// This file owns what a client says of a reply.

// This file owns the events of a Client: replies, pushes, connections, answers
// to what it asked, and time. Each one is taken under c.mu as a whole, and
// returns what the runtime is to do once the lock is released.
//
// Invariant: nearly all replies take no lock that is shared by all nodes. A
// reply of the incarnation that votes, whose time is within the bounds of its
// node's clock, counts at once: see judge and within. All claims of a process
// would wait for one another else. Verdict is what a Client says of a reply.
// The zero Verdict is of a reply that was not judged, and such a one does not
// count.
type Verdict struct {
	Why      Why
	Guarding bool // its node is within its guard time, or was until this reply
}

// Why is why a reply does not count, or that it does.
type Why uint8

// The reasons.
const (
	Unjudged         Why = iota
	Counts               // it counts
	OtherIncarnation     // it is of another incarnation than the connection began with
	Parted               // its node's clock and this process's have parted
)

// Counts reports whether the reply counts.
func (v Verdict) Counts() bool { return v.Why == Counts }
