package peers

// The state of a client's nodes, part by part, with the lock of each part. The
// other files contain what the parts do.

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
	"github.com/quorate/quorate/internal/wake"
)

// Peers are one client's nodes, and what they share. It is safe for concurrent
// use: NewPeers sets its fields, and each part that changes later has a lock of
// its own, which the comment of its type names.
type Peers struct {
	Set        setup.Settings
	Claims     claims
	Nodes      nodes  // of its set, by number
	Seeds      nodes  // of its list, from nodeset.Seed on
	Channel    string // pushes to this client, on every node
	Clock      *wake.Clock
	built      chan struct{} // closed when Seeds is complete: see awaitPlace
	Over       chan struct{} // closed when Close begins
	recovering recovering
	Reach      reach
	Tasks      tasks
	Observer   observer
	Driver     driver
	Members    *members
	// Context of everything that runs without a caller; ends when the client
	// closes.
	Life    context.Context
	End     context.CancelFunc
	Clients *setup.Clients
}

// claims is what a client has in progress at its nodes. None of its methods
// waits for a node.
type claims interface {
	// Each passes an event to every claim.
	Each(event func(c *process.Attempt, now protocol.Time))
	// EachOperation passes an event to every operation on a record.
	EachOperation(event func(in *lease.RegisterOp, now protocol.Time))
	// Signal makes the watches ask again.
	Signal()
	// Push passes a node's push on to a claim or a watch.
	Push(node int, m *protocol.Push)
	// Repair performs a task of a repair.
	Repair(task *repair.Task)
	// Batch combines many commands for a node into one.
	Batch() transport.Batch
	// Alone reports whether no claim waits for a push.
	Alone() bool
}

// Now returns the time of wake.Clock, by which this process judges its leases. It
// does not follow the wall clock.
func (ps *Peers) Now() protocol.Time { return ps.Clock.Now() }

func (ps *Peers) IsClosed() bool {
	select {
	case <-ps.Over:
		return true
	default:
		return false
	}
}

func NewID() protocol.ID {
	var id protocol.ID
	_, _ = rand.Read(id[:]) // documented never to fail
	return id
}

// Identity returns a new identity for a server that becomes a member.
func Identity() string {
	return NewID().String()[:16]
}

// Chance makes two ballots from the same moment differ. Like ids, it comes from
// the system's random source: machines restored from the same snapshot share
// the state of math/rand.
func Chance() uint32 {
	id := NewID()
	return binary.BigEndian.Uint32(id[:4])
}

// Node is one master as this client sees it. Fields say which goroutine writes
// them; the others are set once or have their own locks.
type Node struct {
	flow.Connection
	ps     *Peers
	Index  int
	Addr   string
	client redis.UniversalClient
	// The client was made for a node that is not in the list, and ends with the
	// node.
	own       bool
	Slot      string        // of a cluster: a key of the bucket; else empty
	Attempted chan struct{} // closed when the first attempt to connect has succeeded or failed
	first     sync.Once     // closes Attempted
	fanout    *lease.Fanout // of all nodes
	handshake handshake
	Writes    writes
	Jump      atomic.Pointer[Jump] // nil: none
	Logger    *slog.Logger         // drops lines that repeat another one
	// Why the node refused the last question of a recording; nil: it did not.
	setRefused atomic.Pointer[resp.Error]

	placed  chan struct{} // closed when the node is in the list; its connection waits for that
	Dropped atomic.Bool   // the node is ending or has ended
	Ended   chan struct{} // closed when the node was dropped and has ended
}

// A seed is a node of the client's list that is only asked what it stores.
func (n *Node) Seed() bool { return n.Index >= nodeset.Seed }

// handshake begins each connection to a node. Its fields are only used when a
// connection begins, which happens to one connection of the node at a time.
type handshake struct {
	n      *Node
	probed probed
	later  *time.Timer   // judges the node again
	pause  time.Duration // the pause before that
	evicts string        // the eviction policy that was already warned of
	votes  atomic.Bool   // the node has a vote on this connection
}

// probed is what a node answered at the start of a connection. If the node
// knows the scripts and its marker names its run, there is nothing to send, and
// the handshake takes one round trip.
type probed struct {
	set     string      // its record of the set
	home    script.Home // the configuration at whose key the marker was read
	marker  string
	clock   time.Time       // its time; zero: unknown
	sent    protocol.Time   // when it was asked for the time
	clockAt protocol.Time   // when it had answered
	missing []script.Script // scripts that it does not know
	wait    time.Duration   // how much of its guard time is left as the connection begins
	cluster bool            // the server is in cluster mode
	refused error           // a question was refused, so the answers say nothing about the node
}

// Jump is the last jump of a node's clock, for Check: an operator must see the
// cause of a loss after the node has recovered.
type Jump struct {
	By   time.Duration
	When time.Time // when it was seen
}

// MaxNodes is how many nodes a client can have: sets of nodes are a uint32 in
// the whole protocol.
const MaxNodes = 32

// nodes has the nodes of a client by index: either those of its set, by number,
// or those of its list. Nodes may come and go while the client runs. It is safe
// for concurrent use: mu guards changes, and readers see a list that is never
// written to.
// Lock order: mu, then the lock of a link. No callback of a link takes mu.
// Invariant: each index that claims know has a node. A dropped node stays in
// the list, with a closed connection, until another node takes the index. A
// number that no member has belongs to a dropped node.
// Invariant: a node begins after the last one with its index, or its address,
// has ended.
type nodes struct {
	mu     sync.Mutex
	base   int // added to a place in the list to get the index
	closed bool
	list   atomic.Pointer[[]*Node] // nil: there is none yet
}

func (s *nodes) All() []*Node {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Live returns the nodes that have not been dropped, for code that looks at
// nodes one by one. To count votes, use the Client's Group.
func (s *nodes) Live() []*Node {
	return slices.DeleteFunc(slices.Clone(s.All()), func(n *Node) bool { return n.Dropped.Load() })
}

func (s *nodes) At(i int) *Node { return (*s.list.Load())[i-s.base] }

func (s *nodes) Size() int { return len(s.All()) }

// pool returns the nodes to which an index belongs.
func (ps *Peers) pool(i int) *nodes {
	if i >= nodeset.Seed {
		return &ps.Seeds
	}
	return &ps.Nodes
}

// Node returns the node with the given index, or nil.
func (ps *Peers) Node(i int) *Node {
	s := ps.pool(i)
	if i-s.base >= s.Size() {
		return nil
	}
	return s.At(i)
}

func (ps *Peers) Addr(i int) string {
	if n := ps.Node(i); n != nil {
		return n.Addr
	}
	return ""
}

// driver owns the Client and the timer that it asks for. It is safe for
// concurrent use: both have locks of their own.
// Lock order: the lock of an attempt or a registerCall, then the Client's.
type driver struct {
	ps     *Peers
	Client *process.Client
	timer  wake.Timer
}

func (d *driver) Sets() protocol.Quorums { return d.Client.Group().Sets }

// Count returns how many nodes have a vote, including the nodes of both sets
// while two count.
func (ps *Peers) Count() int { return bits.OnesCount32(ps.Driver.Sets().All()) }

// members owns the state machine that decides which set this client counts on,
// and what follows from it for the claims and the connections. It is safe for
// concurrent use: mu guards known, moving, counted, following and logged, and
// each write of signal. The other fields are copies for readers without mu.
// Lock order: mu is a leaf.
// Invariant: requests name another configuration only once each claim knows
// which nodes it has.
type members struct {
	ps        *Peers
	mu        sync.Mutex
	known     *nodeset.Membership
	moving    int                    // events whose outcome the claims do not know yet
	counted   *nodeset.Configuration // the configuration that the claims count on
	following bool                   // a goroutine is making the claims count on another configuration
	logged    map[int]nodeset.SetFault
	// Closed when Named, Config or wrong changes.
	signal atomic.Pointer[chan struct{}]
	Named  atomic.Pointer[naming]                // what requests name
	Config atomic.Pointer[nodeset.Configuration] // nil: no set is known
	// Why this client's list is not the set's; nil if no difference is known.
	wrong atomic.Pointer[fault.SetError]
	// A call needs a set, so blank nodes record the list's; see WaitForSet.
	wanted atomic.Bool
	soon   atomic.Bool // they will do so soon even without a call, see wantSoon
	// An operator has called Bootstrap, so wantSoon does nothing: the next call
	// decides.
	declared atomic.Bool
	Met      atomic.Bool // a try has waited until the members were connected
	Recorder recorder
}

// naming is what requests name: the configuration, by the key of its marker,
// and its settings.
type naming struct {
	Home             script.Home
	Guard, Retention time.Duration
}

// recorder makes the nodes record their set when members finds that a recording
// is due. It is safe for concurrent use; members.mu guards recording and
// declaring.
type recorder struct {
	ps         *Peers
	members    *members
	recording  bool   // record is running
	declaring  int    // calls of Bootstrap in progress: only these record meanwhile
	lastWarned string // what record last warned of; only record uses it
}

// SetKnown reports whether a set is known and requests name it, so that claims
// can start.
// Invariant: no claim begins before requests name a set.
func (s *members) SetKnown() bool { return s.Config.Load() != nil && s.Home() != "" }

func (s *members) Home() script.Home { return s.Named.Load().Home }

// MarkerKey is the key of the marker that this client's requests name. A caller
// must use it for one command only. If the set moves on meanwhile, the command
// names the earlier marker, which the node no longer has, so no answer to it
// counts (rule 1).
func (s *members) MarkerKey() string { return s.Home().Marker(s.ps.Set.Prefix) }

// Guard returns the set's guard time, or this client's while no set is known.
func (ps *Peers) Guard() time.Duration { return ps.Members.Named.Load().Guard }

// Skew returns the set's skew, or this client's while no set is known.
func (ps *Peers) Skew() time.Duration {
	if c := ps.Members.Config.Load(); c != nil {
		return c.Skew()
	}
	return ps.Set.Skew
}

func (s *members) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.List()
}

// reach logs that there is no quorum of connected nodes, with the cause of each
// node. It is safe for concurrent use; mu guards it. An episode begins when a
// node is down or the Quorum begins, and ends when a quorum is connected.
type reach struct {
	ps       *Peers
	mu       sync.Mutex
	timer    *time.Timer   // runs while an episode lasts
	armed    bool          // the timer runs
	pause    time.Duration // until the next look
	lastLine string        // the gist of this episode's last line
}

// recovering logs once per episode that there is no quorum until the guard time
// of some nodes is over. mu guards it. An episode begins when a quorum becomes
// impossible, and ends when one is possible. Where only time says that a node
// votes again, the episode lasts for lateAnswers longer. See
// TestEpisodeOutlastsLateAnswers.
type recovering struct {
	mu     sync.Mutex
	until  [MaxNodes]time.Time // per node
	logged bool
}
