package inspect

// This file owns what a report is made of.

import (
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/protocol"
)

// Kind is the kind of primitive that a name serves, as far as the nodes know.
// It is a plain value, safe for concurrent use.
type Kind string

// The kinds.
const (
	// None (""): nothing is known of the name.
	None Kind = ""
	// Mutex ("mutex"): a mutex, a shard, or one of the kinds with a record that
	// an older version of Quorate holds and has recorded nothing for yet.
	Mutex Kind = "mutex"
	// RWMutex ("rwmutex"): a lock with readers.
	RWMutex Kind = "rwmutex"
	// Semaphore ("semaphore"): permits.
	Semaphore Kind = "semaphore"
	// Once ("once"): work that is recorded as done, or that is being done.
	Once Kind = "once"
	// Leader ("leader"): an election.
	Leader Kind = "leader"
	// Period ("period"): work that is done once per period.
	Period Kind = "period"
	// Flight ("flight"): a thing that is loaded by one caller for all.
	Flight Kind = "flight"
)

// A Claim is one process that holds a name, or waits for it. It is a plain
// value, safe for concurrent use as long as no goroutine changes it.
type Claim struct {
	Token  uint64        // of its first hold, which [quorate.Lease] has as its token; the token of a waiter is not final
	Host   string        // of the process
	PID    int           // of the process
	Label  string        // of the process, see [quorate.WithOwner]; empty: none
	Since  time.Time     // when it asked for the name, by the nodes' clocks
	Left   time.Duration // until its lease ends unless it is renewed
	Weight int64         // permits that it takes; 1 unless it is of a semaphore
	Writer bool          // of an rwmutex
	Votes  int           // nodes that vote for it
}

// A Record is what is recorded beside the claims of a name: that work is done,
// which process leads, the newest run of a period, or a shared result. It is a
// plain value, safe for concurrent use as long as no goroutine changes it.
type Record struct {
	Token uint64    // of the hold that recorded it
	Host  string    // of the process that did the work, or leads
	PID   int       // of that process
	ID    string    // of a leader
	Value string    // of a leader: what it tells of itself
	At    time.Time // when the work of a once was done, or the leader won, by the clock of that process; the start of the newest period; when the result of a flight was loaded
	Until time.Time // when the nodes forget it; zero: never
	Nodes int       // that have it; fewer than a majority: it may not stand
}

// A Node is what one node says of a name. It is a plain value, safe for
// concurrent use as long as no goroutine changes it.
type Node struct {
	Node       string        // address
	Err        error         // why it could not be asked; the rest is then zero
	Recovering time.Duration // it is new or lost its data: how much longer its word is no evidence
	Tokens     []uint64      // of the claims that it votes for
	Queued     int           // claims, with those that it votes for
	Differs    []string      // what it says otherwise than a majority, in words
}

// token is a ticket as tokens show it.
func token(t protocol.Ticket) uint64 { return uint64(t) * core.MaxPasses }

// since is when a claim was made: its ticket is the nodes' clocks in
// microseconds, or little more where others have claimed at the same time.
func since(t protocol.Ticket) time.Time { return time.UnixMicro(int64(t)) }
