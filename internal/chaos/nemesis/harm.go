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

// Skew is how far clocks may be apart that are not being set.
const Skew = time.Second

// Plan is what of a plan the nemesis needs.
type Plan struct {
	Nodes   int
	Clients int
	Rivals  int // processes that lock the same names by redsync
	Work    []string
	Control string // what is expected to fail; empty for the library itself
	Seed    uint64

	Pace   time.Duration // average time between two faults of a track
	Tracks []string

	TTL, Guard time.Duration
}

// spares are how many servers there are that are no members when the run
// begins.
const spares = 4

// MemberTrack is the track in which operators exchange nodes of the set.
const MemberTrack = "members"

// clocks are the tracks that need servers with clocks of their own.
var clocks = []string{"clocks", "drift"}

// Exchanges says whether the members of the set change.
func (p *Plan) Exchanges() bool {
	return len(lo.Intersect(p.Tracks, []string{MemberTrack, "parted"})) > 0
}

// Servers are how many there are to be.
func (p *Plan) Servers() int { return p.Nodes + lo.Ternary(p.Exchanges(), spares, 0) }

// Clocks says whether servers need clocks of their own.
func (p *Plan) Clocks() bool { return len(lo.Intersect(p.Tracks, clocks)) > 0 }

// plain are the names whose redlock keys are in use: those of mutexes and
// leaders.
func (p *Plan) plain() []string {
	if p.Control == client.ControlRedsync {
		return client.Names(client.ControlRedsync)
	}
	return append(client.Names("mutex"), client.Names("leader")...)
}

// Fault is one thing that was done.
type Fault struct {
	Kind, Target string
	From, To     int64 // of record.Now
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

// latecomers counts what has been late.
type latecomers struct {
	pushes   atomic.Int64 // messages
	commands atomic.Int64 // pieces of what a connection transports
}

// tardy is a fault that delays what comes by a fixed time, and counts it.
func (l *latecomers) tardy(delay time.Duration, kind proxy.Kind) proxy.Fault {
	count := func([]byte) { l.commands.Add(1) }
	if kind == proxy.Pushes {
		count = func(data []byte) { l.pushes.Add(int64(bytes.Count(data, []byte("$7\r\nmessage\r\n")))) }
	}
	return proxy.Fault{Delay: delay, Observe: count}
}

// exchanges is what the track of members needs. Its fault of the moment alone
// uses it, but for the counts.
type exchanges struct {
	done, failed, killed, copies atomic.Int64
	found                        []judge.Violation
}

// ExchangeStats counts what operators have done.
type ExchangeStats struct {
	Done, Failed int64 // by operators whose end was waited for
	Killed       int64 // operators, in the middle of an exchange
	Copies       int64 // attempts to add a server with a copy of a member's data
}

func (m *exchanges) stats() ExchangeStats {
	return ExchangeStats{m.done.Load(), m.failed.Load(), m.killed.Load(), m.copies.Load()}
}

func (s ExchangeStats) String() string {
	return fmt.Sprintf("%d, %d; %d; %d", s.Done, s.Failed, s.Killed, s.Copies)
}

// Nemesis does harm, on several tracks at a time: to servers, to their data, to
// the network and to clients. What each track does, in which order and for how
// long, is drawn from the seed alone; how it meets what the others do is not.
type Nemesis struct {
	Plan    Plan
	Nodes   []*fleet.Node
	Wires   fleet.Wires
	Clients []*client.Client
	Memory  *fleet.Memory
	Roster  *fleet.Roster
	Orders  []Orders // of each operator; what to do is missing

	members    exchanges
	active     atomic.Int64
	latecomers latecomers
	ended      atomic.Int64  // connections of clients that slept
	furthest   time.Duration // the most that the clocks of a majority were off at one moment
	mu         sync.Mutex
	log        []Fault
}

// harm is a kind of fault. Do draws from r before anything else, then does it,
// waits and undoes it, and returns what it was done to. It undoes it also when
// ctx ends meanwhile.
type harm struct {
	kind string
	do   func(ctx context.Context, n *Nemesis, r *rand.Rand) (target string, err error)
}

// errOneNode is of a fault that needs more nodes than one.
var errOneNode = fmt.Errorf("%w: there is one node", fleet.ErrSkip)

// Choices.

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// some are k of n numbers.
func some(r *rand.Rand, k, n int) []int {
	s := r.Perm(n)[:k]
	slices.Sort(s)
	return s
}

// short is well below the ttl, long above it.
func (n *Nemesis) short(r *rand.Rand) time.Duration {
	return between(r, n.Plan.TTL/4, n.Plan.TTL*7/10)
}

func (n *Nemesis) long(r *rand.Rand) time.Duration {
	return between(r, n.Plan.TTL*5/4, n.Plan.TTL*5/2)
}

// everyone is each way to the nodes: those of clients, and of operators.
func (n *Nemesis) everyone() []int {
	return lo.Range(len(n.Wires))
}

// Voters are the servers that are members of a set that may count.
func (n *Nemesis) Voters() []*fleet.Node {
	return lo.Map(n.Roster.Voters(), func(id int, _ int) *fleet.Node { return n.Nodes[id] })
}

// pick is one of them.
func (n *Nemesis) pick(r *rand.Rand) *fleet.Node {
	voters := n.Voters()
	return voters[r.IntN(len(voters))]
}

// some are the numbers of some of them.
func (n *Nemesis) some(r *rand.Rand, most func(voters int) int) []int {
	voters := n.Roster.Voters()
	return lo.Map(some(r, most(len(voters)), len(voters)), func(i int, _ int) int { return voters[i] })
}

// shuffled are the numbers of all of them.
func (n *Nemesis) shuffled(r *rand.Rand) []int {
	voters := n.Roster.Voters()
	return lo.Map(r.Perm(len(voters)), func(i int, _ int) int { return voters[i] })
}

// allNodes are the numbers of all servers, also of those that are no members.
func (n *Nemesis) allNodes() []int { return lo.Range(len(n.Nodes)) }

// back says that a node that has lost its data is there again. Its caller holds
// mu of the node.
func (n *Nemesis) back(nd *fleet.Node) {
	n.Memory.Back(nd.ID)
	n.retire(nd)
}

// retire stops a server that is no member any more, and has lost its data. Its
// caller holds mu of the node.
//
// Invariant: no such server runs. A client that starts with a list of such
// servers takes them for nodes that have recorded no set (docs/operate/membership.md,
// Limits of an exchange).
func (n *Nemesis) retire(nd *fleet.Node) {
	if n.Plan.Exchanges() && !n.Roster.Has(nd.ID) && !nd.KnowsSet() {
		_ = nd.Server.Kill()
	}
}

// length of a cut: below, around or above the ttl.
func (n *Nemesis) length(r *rand.Rand) time.Duration {
	return between(r, n.Plan.TTL/4, n.Plan.TTL*5/2)
}

// list writes numbers as one reads them.
func list(ids []int) string { return strings.Trim(fmt.Sprint(ids), "[]") }
