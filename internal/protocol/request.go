package protocol

import "time"

// The messages between client and node, and how urgent a request is.

// Op is what a request asks of a node.
type Op uint8

// The operations, each atomic at a node: four of a claim, idempotent by id, and
// four of a record (register.go), idempotent by version.
const (
	OpJoin   Op = iota + 1 // join(id, T0): queue, or refresh when the id is known
	OpSettle               // settle(id, T): take ticket T here, or the next one above that the node allows
	OpBeat                 // beat(id): refresh the lease
	OpLeave                // leave(id): remove
	OpRead                 // read(): what is recorded
	OpOpen                 // open(T): from now on, record nothing below T
	OpPut                  // put(version, value): record, under the claim with ticket T
	// repair(version, value, promise): copy what other nodes have recorded and
	// promised.
	OpRepair
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
	Counting bool          // a semaphore: votes alone do not admit the claim (rule 3)
	Notify   bool          // the owner wants to hear when a claim waits behind it
}

// Writer is the weight of an rwmutex's writer, and the capacity that its
// readers share. It would take as many processes to exceed it with readers.
const Writer = 1 << 30

// Request is one message to one node; the claim's Terms go with it.
type Request struct {
	Node int
	Op   Op
	List bool // ask for the list of lower claims (capacity > 1)
	// Patient: the request drops no claim whose lease has ended. Joins and
	// leaves are never patient.
	Patient bool
	Merged  bool // its answer also serves a later request: see Claim.Answer; not sent to the node

	// While the request waits at the client for room at its node:
	Class     Class
	Withdrawn bool // it is obsolete

	Ticket  Ticket   // T0 of a join, T of a settle, where the list of a beat begins
	Sent    Time     // before the request left (s in the protocol); not sent to the node
	Stored  *Stored  // for OpOpen (only the version), OpPut and OpRepair
	Promise *Version // for OpRepair: the newest promise of any node
}

// Status is the outcome of a request at a node.
type Status uint8

// The statuses of an Answer.
const (
	OK Status = iota + 1 // the node holds the claim (after a leave: no longer holds it)
	// A beat for an unknown id, or an open or a put of a claim that the node
	// does not vote for.
	Missing
	Recovering       // the node lost its data and stores nothing yet
	Clash            // the name is in use with another capacity
	StatusSuperseded // an open or a put was superseded by a later run
	// The ticket would be too far ahead of the node's clock: nothing is stored
	// (ticketclock.go).
	Ahead
	// The request names another configuration than the node's: nothing is
	// stored (configuration.go).
	OtherSet
)

func (s Status) String() string {
	return [...]string{"?", "ok", "missing", "recovering", "clash", "superseded", "ahead", "other set"}[s]
}

// Lower is one claim with a lower ticket at a node.
type Lower struct {
	ID     ID
	Weight uint64
}

// Answer is a node's reply to one request.
type Answer struct {
	Status  Status
	Vote    bool // the weights of the lower claims plus its own fit the capacity
	Waiters bool // claims without a vote are queued at this node
	Foreign bool // no vote, only because another library holds the redlock key
	Barred  bool // the head of the queue has no vote either, for that reason
	// No vote: how many claims are ahead of it at this node; a far claim's Wait
	// grows with it.
	Rank        int
	HasTotals   bool // Sum and Digest describe the lower claims (always so when capacity is 1 and Vote)
	Listed      bool // Lower is complete from its first claim on
	Incarnation Incarnation
	// The node's clock in microseconds, when it answered; most answers cut it
	// to milliseconds.
	Clock  int64
	Ticket Ticket // the claim's ticket at this node; when Missing, the node's fence
	// No vote: when asking again may help (0: no hint). Recovering: how much
	// longer. Ahead: when the ticket may be given.
	Wait time.Duration
	// Total weight of the lower claims. If a requested list is too long, it
	// includes some higher claims.
	Sum    uint64
	Digest uint64 // sum of their ids' digests modulo 2^52
	// The lower claims from some ticket on, when the request asked for the list
	// and there are any.
	Lower      []Lower
	BaseSum    uint64 // Listed: the totals of the claims before Lower
	BaseDigest uint64
	AllSum     uint64 // Listed: the totals of all other claims with votes
	AllDigest  uint64
	Capacity   uint64 // Clash: the capacity in force
	Limit      uint64 // the capacity since a Resize; 0: none
	LimitAt    Ticket // the ticket of that Resize
	Record     *Entry // what the node has recorded: in answers to the operations of a record
}

// Push is a message that a node sends unasked. Pushes may be lost, repeated, or
// overtake answers. No rule depends on their arrival, and each names the
// incarnation and the ticket that it belongs to.
type Push struct {
	ID          ID
	Incarnation Incarnation
	Clock       int64  // as in Answer
	Ticket      Ticket // the claim's ticket at this node; with Changed, the one the record was written under
	// True: the claim is admissible here now; false: another claim has begun to
	// wait behind it.
	Vote        bool
	Waiters     bool
	Sum, Digest uint64 // with Vote: the lower claims
	Limit       uint64 // as in Answer
	LimitAt     Ticket
	Ask         bool // the node has work left, and needs another request of the claim to do it
	Evict       bool // an operator ends the hold, see Claim.evict
	Changed     bool // not about a claim: the record that ID watches has changed
}

// Verdict is a Client's judgement of a reply. The zero Verdict belongs to a
// reply that was not judged, which does not count.
type Verdict struct {
	Why      Why
	Guarding bool // the node is within its guard time, or was until this reply
}

// Why says whether a reply counts, and if not, why.
type Why uint8

// The reasons.
const (
	Unjudged         Why = iota
	Counts               // it counts
	OtherIncarnation     // the node's incarnation is not the one that the connection began with
	Parted               // the node's clock and this process's clock have drifted apart
)

// Counts reports whether the reply counts.
func (v Verdict) Counts() bool { return v.Why == Counts }

// Class is how urgent a request is when a node cannot take all of them at once.
type Class uint8

// The classes, the most urgent first.
const (
	// Certain requests always find room and never wait: the connection itself
	// needs them, and they are few.
	Certain Class = iota
	// Renewals keep what is held, and leaves let the next claim in. A hold that
	// is not renewed in time is lost, and a leave makes later work possible. So
	// both come first.
	Renewals
	// Waits keep the places of waiting claims.
	Waits
	// Joins are new work. A caller that locks can wait for them.
	Joins
	// Records are operations on records. They may be long, and a client that
	// reconnects sends one for each record that it watches.
	Records
	Classes
)
