package inspect

// The parts of a report.

import (
	"time"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/protocol"
)

// Kind is the type of primitive that a name is used for, according to the nodes.
type Kind string

// The kinds.
const (
	// None (""): nothing is known about the name.
	None Kind = ""
	// Mutex ("mutex"): a mutex or a shard. A primitive that keeps a record is also
	// shown as a mutex if an older version of Quorate holds the name and has not
	// recorded anything yet.
	Mutex Kind = "mutex"
	// RWMutex ("rwmutex"): a lock with readers.
	RWMutex Kind = "rwmutex"
	// Semaphore ("semaphore"): permits.
	Semaphore Kind = "semaphore"
	// Once ("once"): work that is recorded as done, or is in progress.
	Once Kind = "once"
	// Leader ("leader"): an election.
	Leader Kind = "leader"
	// Period ("period"): work that runs once per period.
	Period Kind = "period"
	// Flight ("flight"): a result that one caller loads for all.
	Flight Kind = "flight"
)

// A Claim is one process that holds a name or is waiting for it.
type Claim struct {
	// Token of its first hold, as returned by [quorate.Lease]; a waiter's token
	// is not final.
	Token uint64
	Host  string // the process's host
	PID   int    // the process's ID on that host
	Label string // the process's label; see [quorate.WithOwner]; empty if not set
	Note  string // the claim's note; see [quorate.WithNote]; empty if not set
	ID    string // the ID of a participant in an election; see leader.WithID; empty if not set
	// The priority of a participant in an election; see leader.WithPriority.
	Priority int
	Since    time.Time     // when it asked for the name, by the nodes' clocks
	Left     time.Duration // time left on its lease unless it is renewed
	Weight   int64         // number of permits; 1 except for semaphores
	Writer   bool          // whether it is a writer of an rwmutex
	Votes    int           // number of nodes that vote for it
	// For a holder: only a bare majority votes for it although another node is
	// answering, so restarting one of these nodes would end the hold.
	Bare bool
}

// A Record is what the nodes have recorded for a name in addition to its
// claims: that work is done, which process is the leader, the latest run of a
// period, or a shared result.
type Record struct {
	Token uint64 // token of the hold that recorded it
	Host  string // host of the process that did the work or is the leader
	PID   int    // ID of that process
	ID    string // the leader's ID
	Value string // the leader's value, such as an address
	// When the work of a once was done or the leader was elected, by the clock
	// of the process that recorded it; when the latest period started; when the
	// result of a flight was loaded.
	At    time.Time
	Until time.Time // when the nodes forget it; zero: never
	Nodes int       // number of nodes that have it; if less than a majority, the record may not last
}

// A Node is what one node reports about a name.
type Node struct {
	Node string // the node's address
	Err  error  // why the node could not be asked; the other fields are then zero
	// For a node that is new or has lost its data: how much longer its report
	// does not count.
	Recovering time.Duration
	Tokens     []uint64 // tokens of the claims that it votes for
	Queued     int      // number of claims, including those that it votes for
	Differs    []string // where its report differs from the majority's
}

// token is a ticket as tokens show it.
func token(t protocol.Ticket) uint64 { return uint64(t) * core.MaxPasses }

// since is when a claim was made: its ticket is the nodes' clocks in
// microseconds, or little more where others have claimed at the same time.
func since(t protocol.Ticket) time.Time { return time.UnixMicro(int64(t)) }
