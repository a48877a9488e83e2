package protocol

import (
	"encoding/hex"
	"math"
	"time"
)

// Time is a reading of one process's monotonic clock, in nanoseconds. Two
// processes' readings are never compared.
type Time int64

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Never is later than every reading.
const Never = Time(math.MaxInt64)

// ID names one claim: 128 random bits, fresh for each attempt.
type ID [16]byte

// String returns the ID as 32 hexadecimal digits, the form nodes store.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads the form that String writes.
func ParseID(s string) (ID, bool) {
	var id ID
	if len(s) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// Ticket is a claim's place in a name's queue and the root of its fencing
// token: microseconds, near the nodes' clocks (ticketclock.go). It is below
// 2^53 so that a Lua number and a sorted-set score hold it exactly.
type Ticket uint64

const (
	// Residues is the number of residue classes: a claim only ever gets tickets
	// congruent to its own residue, so two claims rarely propose the same one
	// and settling does not chase its own tail.
	Residues = 64
	// MaxTicket bounds what a client believes: above it a number is no longer
	// exact in Lua.
	MaxTicket = Ticket(1) << 53
)

// Residue is the class of the tickets a claim may hold: the last byte of its id
// modulo Residues.
func (id ID) Residue() Ticket { return Ticket(id[len(id)-1]) % Residues }

// Next returns the lowest ticket above fence in id's residue class.
func (id ID) Next(fence Ticket) Ticket {
	t := fence + 1
	return t + (id.Residue()-t%Residues+Residues)%Residues
}

// Incarnation is the random value of a node's marker: another value means that
// the node lost its data in between.
type Incarnation uint64

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
	Node   int
	Op     Op
	List   bool // ask for the list of lower claims (capacity > 1)
	Merged bool // its answer serves for a later request, too: see Claim.Answer; not sent to the node

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
	Clock       int64         // the node's, in milliseconds, when it answered
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

// DigestMod keeps digests exact in a Lua number: the sum of two is below 2^53.
// With 52 random bits for each claim, two different sets of claims have equal
// digests once in 2^52.
const DigestMod = 1 << 52

// Digest is a claim's contribution to a view's digest: its first 13 hexadecimal
// digits.
func (id ID) Digest() uint64 {
	var d uint64
	for _, b := range id[:6] {
		d = d<<8 | uint64(b)
	}
	return d<<4 | uint64(id[6]>>4)
}

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
