package protocol

import "time"

// This file owns what a client and a node say to each other, how urgent a
// request is, and the words for what becomes of one.

// Op is what a request asks of a node.
type Op uint8

// The operations, each atomic at a node: four of a claim, idempotent by id, and
// four of a record (register.go), idempotent by version.
const (
	OpJoin   Op = iota + 1 // join(id, T0): queue, or refresh when the id is known
	OpSettle               // settle(id, T): hold T here, or as near above as the node allows
	OpBeat                 // beat(id): refresh the lease
	OpLeave                // leave(id): remove
	OpRead                 // read(): what is recorded
	OpOpen                 // open(T): from here on nothing is recorded below T
	OpPut                  // put(version, value): record, under the claim that has T
	OpRepair               // repair(version, value, promise): record and promise what other nodes have
)

func (o Op) String() string {
	return [...]string{"?", "join", "settle", "beat", "leave", "read", "open", "put", "repair"}[o]
}

// Terms are the constants of one claim, the same in all its requests.
type Terms struct {
	ID       ID
	Weight   uint64
	Capacity uint64
	TTL      time.Duration // whole milliseconds
	Counting bool          // a semaphore: votes alone do not suffice (rule 3)
	Notify   bool          // the owner wants to hear when a claim waits behind it
}

// Writer is what a writer of an rwmutex weighs, and the capacity that its
// readers share. More claims of readers than this would need as many processes.
const Writer = 1 << 30

// Request is one message to one node; the claim's Terms go with it.
type Request struct {
	Node int
	Op   Op
	List bool // ask for the list of lower claims (capacity > 1)
	// Patient: the request drops no claim whose lease has ended. Joins and leaves
	// are not patient.
	Patient bool
	Merged  bool // its answer serves for a later request, too: see Claim.Answer; not sent to the node

	// While it waits at the client for room at its node:
	Class     Class
	Withdrawn bool // it is not wanted any more

	Ticket  Ticket   // T0 of a join, T of a settle, where the list of a beat begins
	Sent    Time     // s of the protocol: before the request left; not sent to the node
	Stored  *Stored  // of OpOpen, OpPut and OpRepair; of OpOpen only the version
	Promise *Version // of OpRepair: the newest that any node has given
}

// Status is how a node took a request.
type Status uint8

// The statuses of an Answer.
const (
	OK               Status = iota + 1 // the node holds the claim (after a leave: holds it no more)
	Missing                            // a beat for an id the node does not know; an open or a put of a claim that it does not vote for
	Recovering                         // the node lost its data and stores nothing yet
	Clash                              // the name is in use with another capacity
	StatusSuperseded                   // an open or a put that a later run has superseded
	Ahead                              // the ticket would be too far ahead of the node's clock: nothing is stored (ticketclock.go)
	OtherSet                           // the request counts on another configuration than the node's: nothing is stored (configuration.go)
)

func (s Status) String() string {
	return [...]string{"?", "ok", "missing", "recovering", "clash", "superseded", "ahead", "other set"}[s]
}

// Lower is one claim with a lower ticket at a node.
type Lower struct {
	ID     ID
	Weight uint64
}

// Answer is what a node says to one request.
type Answer struct {
	Status      Status
	Vote        bool // the weights of the lower claims plus its own fit the capacity
	Waiters     bool // claims without a vote are queued at this node
	Foreign     bool // not voted only because another Redlock client holds the redlock key
	Barred      bool // nor is the first one here, for that reason
	Rank        int  // no vote: how many claims are before it at this node; for people
	HasTotals   bool // Sum and Digest describe the lower claims (always so when capacity is 1 and Vote)
	Listed      bool // Lower: there are no others from there on
	Incarnation Incarnation
	Clock       int64         // the node's, in microseconds, when it answered; most answers cut it to milliseconds
	Ticket      Ticket        // the claim's ticket at this node; when Missing, the node's fence
	Wait        time.Duration // no vote: when asking again may help (0: no hint); Recovering: how much longer; Ahead: when the ticket may be given
	Sum         uint64        // total weight of the lower claims; where a list that was asked for is too long, of some above as well
	Digest      uint64        // sum of their ids' digests modulo 2^52
	Lower       []Lower       // the lower claims from some ticket on, when the request asked for the list and there are any
	BaseSum     uint64        // Listed: of those before
	BaseDigest  uint64
	AllSum      uint64 // Listed: of all claims with votes but this one, as where a list is too long
	AllDigest   uint64
	Capacity    uint64 // Clash: the capacity in force
	Limit       uint64 // the capacity since a Resize; 0: none
	LimitAt     Ticket // of that Resize
	Record      *Entry // what the node has recorded: in answers to the operations of a record
}

// Push is what a node says unasked. Pushes may be lost, repeated, and overtake
// answers: no rule needs one to arrive, and each names the incarnation and the
// ticket that it belongs to.
type Push struct {
	ID          ID
	Incarnation Incarnation
	Clock       int64  // as in Answer
	Ticket      Ticket // the claim's ticket at this node
	Vote        bool   // true: the claim is admissible here now; false: another claim has begun to wait behind it
	Waiters     bool
	Sum, Digest uint64 // with Vote: the lower claims
	Limit       uint64 // as in Answer
	LimitAt     Ticket
	Ask         bool // the node has left something over: it wants another request of the claim
	Evict       bool // an operator ends the hold, see Claim.evict
	Changed     bool // not of a claim: the record that ID watches has changed
}

// Verdict is what a Client says of a reply. The zero Verdict is of a reply that
// was not judged, and such a one does not count.
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

// Class is how urgent a request is for a node that cannot take all of them at
// once.
type Class uint8

// The classes, the most urgent first.
const (
	// Certain is what finds room at every time: the connection itself needs it,
	// and it is little. It never waits.
	Certain Class = iota
	// Renewals keep what is held, and leaves let the next claim in. A hold that
	// is not renewed in time is lost, and a leave makes later work possible, so
	// both come before all the rest.
	Renewals
	// Waits keep the places of the claims that wait.
	Waits
	// Joins are new work. A caller that locks can wait for them.
	Joins
	// Records are operations on records. They may be long, and a client that
	// connects again has one for each record that it watches.
	Records
	Classes
)
