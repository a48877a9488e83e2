package repair

// This file owns Repair: what it is made of, and what others ask of it.
// Invariant: a node is marked as caught up only in the incarnation in which it
// was brought every name that an attesting quorum of the other nodes listed
// after the node's guard time.

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Repair decides for one client which nodes it repairs, by which steps and
// when. Its methods take the time and an event. Out is what the client shall do
// then, and Wake is when it wants a Tick. The client reports the end of each
// step to Done, and sees to it that each step ends.
// Every client has one, whatever it uses. It is not safe for concurrent use.
type Repair struct {
	NodeTimeout time.Duration
	Guard       time.Duration
	Group       protocol.Group
	Out         []RepairStep

	rng     *rand.Rand // spreads the attempts of many clients
	nodes   []nodeRepair
	numbers map[string]protocol.Time // semaphores that a node has missed a Resize of: when to spread the number; Never: it is under way
}

func NewRepair(nodes int, nodeTimeout, guard time.Duration, seed uint64) *Repair {
	return &Repair{
		NodeTimeout: nodeTimeout, Guard: guard, Group: protocol.Group{Sets: protocol.Majority(nodes), Deciders: protocol.Majority(nodes)},
		rng: rand.New(rand.NewPCG(seed, 0)), nodes: make([]nodeRepair, nodes), numbers: map[string]protocol.Time{},
	}
}

// Grow has the client know so many nodes. The attempts under way do not ask
// those that are added.
func (r *Repair) Grow(nodes int) {
	for len(r.nodes) < nodes {
		r.nodes = append(r.nodes, nodeRepair{})
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		for n.others != nil && len(n.others) < nodes {
			n.others = append(n.others, repairPeer{err: errNoMember})
		}
	}
}

// DecideWithin returns how long a run may take that decides a register: two
// round trips, and three where claims meet. A client that sees the name held
// for longer may take it for a run of the work.
func DecideWithin(nodeTimeout, ttl, trip time.Duration) time.Duration {
	return max(nodeTimeout/2, min(4*trip, ttl/2))
}

// MissedResize says that a node does not know the newest number of permits of a
// semaphore, which others know. A quick node may be ahead of a slow one by less
// than a node timeout.
func (r *Repair) MissedResize(now protocol.Time, name string, timeout time.Duration) {
	if _, known := r.numbers[name]; !known { //mutant:RuleRepairResize
		r.numbers[name] = now.Add(timeout)
	}
}

// Attempted reports whether nothing is to be waited for at a node: its repair
// was attempted once, or is not under way.
func (r *Repair) Attempted(node int) bool {
	n := &r.nodes[node]
	return n.stage == repairIdle || n.attempted
}

// NodeHealth is what an onlooker has seen of a node.
type NodeHealth struct {
	Votes    bool // it answers, as a master, and its guard time is over
	CaughtUp bool
}

// MayRestart reports whether one more node may be restarted, or lost with its
// data: each node of each set that counts votes and is caught up. nodes are by
// their numbers in sets. In a set of one node or two no restart keeps a
// majority; then it reports that all is well.
func MayRestart(nodes []NodeHealth, sets protocol.Quorums) bool {
	well := uint32(0)
	for i, n := range nodes {
		if n.Votes && n.CaughtUp { //mutant:RuleSpareCaughtUp=n.Votes
			well |= 1 << i
		}
	}
	return sets.All()&^well == 0
}
