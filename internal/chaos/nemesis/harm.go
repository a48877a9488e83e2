package nemesis

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/chaos/client"
	"github.com/quorate/quorate/internal/chaos/fleet"
	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/testkit/proxy"
	"github.com/samber/lo"
)

// Skew is how far apart clocks may be if nobody sets them.
const Skew = time.Second

// Plan is the part of a run's plan that the nemesis needs.
type Plan struct {
	Nodes   int
	Clients int
	Rivals  int // processes that lock the same names with redsync
	Work    []string
	Control string // what is expected to fail; empty for the library itself
	Seed    uint64

	Pace   time.Duration // average time between two faults of a track
	Tracks []string

	TTL, Guard time.Duration
}

// spares is how many servers are not members when the run begins.
const spares = 4

// MemberTrack is the track in which operators exchange nodes of the set.
const MemberTrack = "members"

// clocks are the tracks that need servers with clocks of their own.
var clocks = []string{"clocks", "drift"}

// Exchanges reports whether the members of the set change.
func (p *Plan) Exchanges() bool {
	return len(lo.Intersect(p.Tracks, []string{MemberTrack, "parted"})) > 0
}

// Servers returns how many servers the run needs.
func (p *Plan) Servers() int { return p.Nodes + lo.Ternary(p.Exchanges(), spares, 0) }

// Clocks reports whether servers need clocks of their own.
func (p *Plan) Clocks() bool { return len(lo.Intersect(p.Tracks, clocks)) > 0 }

// plain returns the names whose redlock keys are used: those of mutexes and
// leaders.
func (p *Plan) plain() []string {
	if p.Control == client.ControlRedsync {
		return client.Names(client.ControlRedsync)
	}
	return append(client.Names("mutex"), client.Names("leader")...)
}

// Fault is one fault that was injected.
type Fault struct {
	Kind, Target string
	From, To     int64 // times of record.Now
	Skipped      bool
	Err          string
}

func (f Fault) String() string {
	text := fmt.Sprintf("%s: %s", f.Kind, f.Target)
	if f.Err != "" {
		text += " (" + f.Err + ")"
	}
	return text
}

// latecomers counts late messages.
type latecomers struct {
	pushes   atomic.Int64 // messages
	commands atomic.Int64 // pieces of data on a connection
}

// tardy returns a fault that delays data by a fixed time, and counts it.
func (l *latecomers) tardy(delay time.Duration, kind proxy.Kind) proxy.Fault {
	count := func([]byte) { l.commands.Add(1) }
	if kind == proxy.Pushes {
		count = func(data []byte) { l.pushes.Add(int64(bytes.Count(data, []byte("$7\r\nmessage\r\n")))) }
	}
	return proxy.Fault{Delay: delay, Observe: count}
}

// exchanges is the state of the members track. Only the current fault of that
// track uses it, except for the counts.
type exchanges struct {
	done, failed, killed, copies atomic.Int64
	found                        []judge.Violation
}

// ExchangeStats counts what operators have done.
type ExchangeStats struct {
	Done, Failed int64 // by operators that were awaited
	Killed       int64 // operators killed during an exchange
	Copies       int64 // attempts to add a server with a copy of a member's data
}

func (m *exchanges) stats() ExchangeStats {
	return ExchangeStats{m.done.Load(), m.failed.Load(), m.killed.Load(), m.copies.Load()}
}

func (s ExchangeStats) String() string {
	return fmt.Sprintf("%d, %d; %d; %d", s.Done, s.Failed, s.Killed, s.Copies)
}

// Nemesis injects faults on several tracks at a time: into servers, their data,
// the network and clients. The seed alone determines the faults of each track,
// their order and their lengths, but not how the faults of different tracks
// coincide.
type Nemesis struct {
	Plan    Plan
	Nodes   []*fleet.Node
	Wires   fleet.Wires
	Clients []*client.Client
	Memory  *fleet.Memory
	Roster  *fleet.Roster
	Orders  []Orders // orders for each operator, without the change to make

	members    exchanges
	active     atomic.Int64
	latecomers latecomers
	ended      atomic.Int64  // connections of clients that slept
	furthest   time.Duration // the largest offset that the clocks of a majority had at one moment
	mu         sync.Mutex
	log        []Fault
}

// harm is a kind of fault. Do first draws from r, then injects the fault,
// waits, undoes it, and returns what the fault hit. It undoes the fault even if
// ctx ends meanwhile.
type harm struct {
	kind string
	do   func(ctx context.Context, n *Nemesis, r *rand.Rand) (target string, err error)
}

// errOneNode is the error of a fault that needs more than one node.
var errOneNode = fmt.Errorf("%w: there is one node", fleet.ErrSkip)

// Choices.

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// some returns k random numbers below n.
func some(r *rand.Rand, k, n int) []int {
	s := r.Perm(n)[:k]
	slices.Sort(s)
	return s
}

// short returns a time well below the ttl, and long one above it.
func (n *Nemesis) short(r *rand.Rand) time.Duration {
	return between(r, n.Plan.TTL/4, n.Plan.TTL*7/10)
}

func (n *Nemesis) long(r *rand.Rand) time.Duration {
	return between(r, n.Plan.TTL*5/4, n.Plan.TTL*5/2)
}

// everyone returns the numbers of all clients and operators, as they index the
// wires.
func (n *Nemesis) everyone() []int {
	return lo.Range(len(n.Wires))
}

// Voters returns the servers that are members of a set that may count.
func (n *Nemesis) Voters() []*fleet.Node {
	return lo.Map(n.Roster.Voters(), func(id int, _ int) *fleet.Node { return n.Nodes[id] })
}

// pick returns a random voter.
func (n *Nemesis) pick(r *rand.Rand) *fleet.Node {
	voters := n.Voters()
	return voters[r.IntN(len(voters))]
}

// some returns the numbers of some voters.
func (n *Nemesis) some(r *rand.Rand, most func(voters int) int) []int {
	voters := n.Roster.Voters()
	return lo.Map(some(r, most(len(voters)), len(voters)), func(i int, _ int) int { return voters[i] })
}

// shuffled returns the numbers of all voters in random order.
func (n *Nemesis) shuffled(r *rand.Rand) []int {
	voters := n.Roster.Voters()
	return lo.Map(r.Perm(len(voters)), func(i int, _ int) int { return voters[i] })
}

// allNodes returns the numbers of all servers, including those that are not
// members.
func (n *Nemesis) allNodes() []int { return lo.Range(len(n.Nodes)) }

// back records that a node that has lost its data is up again. The caller holds
// the node's mu.
func (n *Nemesis) back(nd *fleet.Node) {
	n.Memory.Back(nd.ID)
	n.retire(nd)
}

// retire stops a server that has left the set and has lost its data. The caller
// holds the node's mu.
//
// Invariant: no such server runs. A client that starts with a list of such
// servers would take them for nodes that have recorded no set
// (docs/operate/membership.md, Limits of an exchange).
func (n *Nemesis) retire(nd *fleet.Node) {
	if n.Plan.Exchanges() && !n.Roster.Has(nd.ID) && !nd.KnowsSet() {
		_ = nd.Server.Kill()
	}
}

// length returns the length of a cut: below, around or above the ttl.
func (n *Nemesis) length(r *rand.Rand) time.Duration {
	return between(r, n.Plan.TTL/4, n.Plan.TTL*5/2)
}

// list formats numbers for people.
func list(ids []int) string { return strings.Trim(fmt.Sprint(ids), "[]") }
