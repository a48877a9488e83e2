package protocol

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// This file owns when a node is repaired that lost its data: what starts a repair, what
// ends one, and when the next attempt follows. What an attempt does is in
// repair_attempt.go.
//
// Invariant: a node is marked as caught up only in the incarnation in which it was
// brought every name that an attesting quorum of the other nodes listed after the
// node's guard time. Without that a record is forgotten: the node attests that nothing
// is recorded where a majority has recorded something.

// RepairKind is what a step of a repair does.
type RepairKind uint8

// The steps. Each is followed by one call of Repair.Done, except for the last three.
const (
	RepairLook   RepairKind = iota // read the marker of Node; if Node is Target, also its clock
	RepairTurn                     // take the turn to repair Node for the time For, unless another client has it
	RepairStay                     // prolong that turn to the time For, and say that Count names are left to be brought
	RepairList                     // list names of Node from Cursor on
	RepairRead                     // read the register of Name so that Target has the newest in the end
	RepairDecide                   // decide the register of Name by a run of this client's own
	RepairMark                     // mark Target as caught up if its incarnation is Incarnation
	RepairSpread                   // read the number of permits of Name so that each node that answers has it
	RepairYield                    // give the turn at Node up
	RepairFailed                   // an attempt has failed: for the log
	RepairDone                     // Target is caught up, and Count names were brought to it: for the log
)

// RepairStep is one thing that the client shall do.
type RepairStep struct {
	Kind        RepairKind
	Target      int // the node that is repaired
	Node        int // the node that is asked
	Name        string
	Cursor      string
	Incarnation Incarnation
	For         time.Duration
	Count       int     // names; of RepairStay -1 while they are being listed
	Err         error   // of RepairFailed: why; nil: too few of the other nodes can be asked
	Nodes       []error // and then per node why it cannot be; nil: it can
	Warn        bool    // of RepairFailed: an operator should know
	Succession  bool    // of RepairRead and RepairDecide: Name is the register of SuccessorName

	decided bool // of RepairRead: after a RepairDecide
}

// Reported reports whether the end of the step is to be reported.
func (s *RepairStep) Reported() bool { return s.Kind < RepairYield }

// RepairResult is what has become of a step.
type RepairResult struct {
	Err     error // the step has failed
	ForGood bool  // it will fail the next time, too: this client lacks a right
	OK      bool  // of RepairTurn, RepairDecide and RepairMark

	Incarnation Incarnation   // of RepairLook and the next three
	Run         string        // of the server
	CaughtUp    bool          // the marker says so
	Kept        bool          // so it does that the node was caught up before it entered, and has lost nothing since
	Wait        time.Duration // for the end of the node's guard time

	Names   []string // of RepairList: more names, and where the next portion begins; "0": there is none
	Cursor  string
	Outcome Outcome // of RepairRead
}

// What a repair may have under way, and how often it tries.
const (
	repairBatch   = 64 // names at a time: the connection of the node must not break
	quietAttempts = 24 // attempts, some ten seconds by default, until an operator should know
)

// errNoMember is why a node is not asked that has no vote.
var errNoMember = errors.New("protocol: is not a member of the set")

// ErrUndecided is why a name cannot be brought to a node while its register is undecided.
var ErrUndecided = errors.New("protocol: the register is undecided")

// Repair decides for one client which nodes it repairs, by which steps and when. Its
// methods take the time and an event. Out is what the client shall do then, and Wake is
// when it wants a Tick. The client reports the end of each step to Done, and sees to it
// that each step ends.
//
// Every client has one, whatever it uses. If only users of registers had, a fleet that
// holds locks would let a second node restart while the first is not caught up, and a
// record would be forgotten.
//
// A Repair is not safe for concurrent use.
type Repair struct {
	NodeTimeout time.Duration
	Guard       time.Duration
	Rules       Rules
	Group       Group
	Out         []RepairStep

	rng     *rand.Rand // spreads the attempts of many clients
	nodes   []nodeRepair
	numbers map[string]Time // semaphores that a node has missed a Resize of: when to spread the number; Never: it is under way
}

// repairStage is how far the repair of a node is.
type repairStage uint8

const (
	repairIdle   repairStage = iota // nothing is known to be missing there
	repairPaused                    // an attempt has failed, and the next one follows at retry
	repairing                       // an attempt is under way
)

// NewRepair returns the repairs of a client of so many nodes.
func NewRepair(nodes int, nodeTimeout, guard time.Duration, seed uint64, rules Rules) *Repair {
	return &Repair{
		NodeTimeout: nodeTimeout, Guard: guard, Rules: rules, Group: Group{Sets: Majority(nodes), Deciders: Majority(nodes)},
		rng: rand.New(rand.NewPCG(seed, 0)), nodes: make([]nodeRepair, nodes), numbers: map[string]Time{},
	}
}

// grow has the client know so many nodes. The attempts under way do not ask those that are added.
func (r *Repair) grow(nodes int) {
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

// Lacks reports whether an answer shows that its node may have to be repaired: it is
// not caught up, or it lost its data and may have forgotten how many permits a
// semaphore has.
func Lacks(a *Answer, counting bool) bool {
	return a.Record != nil && !a.Record.CaughtUp || counting && a.Status == Recovering
}

// Decides reports whether a reader follows a read by a run of its own. A register is undecided if a minority has something that a later run may not
// have found: that run, or the next one, decides whether it stands. If no client
// began a run, no reader would ever get an answer, and no node could be repaired. One
// run suffices: what it decides, a majority has.
func (r Rules) Decides(undecided, decided bool) bool {
	return undecided && !decided && r.on(RuleRepairDecide)
}

// DecideWithin returns how long a run may take that decides a register. It claims the
// name and opens the register, which takes two round trips, and three where claims
// meet. A client that sees the name held for longer may take it for a run of the work.
func DecideWithin(nodeTimeout, ttl, trip time.Duration) time.Duration {
	return max(nodeTimeout/2, min(4*trip, ttl/2))
}

// Up says that a connection to a node has begun. The node may have lost its data
// since the last one. And it may be the node without which others could not be repaired.
func (r *Repair) Up(now Time, node int) {
	r.nodes[node].up = true
	r.Hurry(now)
	if r.Rules.on(RuleRepairMeet) {
		r.Look(now, node)
	}
}

// Hurry has nodes that wait be tried now: their guard times may have been ended. What an
// attempt under way has learnt of that may be older, so the next one follows at once.
func (r *Repair) Hurry(now Time) {
	for i := range r.nodes {
		switch n := &r.nodes[i]; n.stage {
		case repairPaused:
			n.pause, n.retry = r.first(), now
		case repairing:
			n.hurried = true
		}
	}
	r.Tick(now)
}

// Look says that a node may have to be repaired: an answer of it has shown that, or it
// has a new incarnation. If a repair is under way there, that may have found the node
// caught up just before the node lost its data: it looks once more in the end.
func (r *Repair) Look(now Time, node int) {
	n := &r.nodes[node]
	switch {
	case !n.up: // the next connection begins with a look
	case n.stage != repairIdle:
		n.again = true
	default:
		n.attempts, n.attempted, n.pause = 0, false, r.first()
		r.begin(now, node)
	}
}

// Down says that the connection to a node has ended. The next one begins with a look,
// and goes on with what was listed if the node has its incarnation still.
func (r *Repair) Down(now Time, node int) {
	n := &r.nodes[node]
	n.up = false
	if n.stage == repairing {
		n.fail(nil, false)
		r.advance(now, node)
		return
	}
	n.idle()
}

// MissedResize says that a node does not know the newest number of permits of a
// semaphore, which others know. A quick node may be ahead of a slow one by less than
// a node timeout.
func (r *Repair) MissedResize(now Time, name string, timeout time.Duration) {
	if _, known := r.numbers[name]; !known && r.Rules.on(RuleRepairResize) {
		r.numbers[name] = now.Add(timeout)
	}
}

// Close ends the repairs. Steps that are under way are still reported to Done, so
// that turns are given up.
func (r *Repair) Close(now Time) {
	clear(r.numbers)
	for i := range r.nodes {
		r.Down(now, i)
	}
}

// Attempted reports whether nothing is to be waited for at a node: its repair was
// attempted once, or is not under way.
func (r *Repair) Attempted(node int) bool {
	n := &r.nodes[node]
	return n.stage == repairIdle || n.attempted
}

// Tick lets time pass.
func (r *Repair) Tick(now Time) {
	for i := range r.nodes {
		n := &r.nodes[i]
		switch {
		case n.stage == repairPaused && now >= n.retry:
			r.begin(now, i)
		case n.stage == repairing && n.turn && !n.failed && now >= n.prolong:
			n.prolong = now.Add(r.turn() / 2)
			r.do(i, RepairStep{Kind: RepairStay, Node: i, For: r.turn(), Count: n.missing()})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.numbers)) {
		if at := r.numbers[name]; now >= at && at != Never {
			r.numbers[name] = Never
			r.Out = append(r.Out, RepairStep{Kind: RepairSpread, Name: name})
		}
	}
}

// Wake returns when a Tick is wanted.
func (r *Repair) Wake() Time {
	w := Never
	for i := range r.nodes {
		n := &r.nodes[i]
		switch {
		case n.stage == repairPaused:
			w = min(w, n.retry)
		case n.stage == repairing && n.turn && !n.failed:
			w = min(w, n.prolong)
		}
	}
	for _, at := range r.numbers {
		w = min(w, at)
	}
	return w
}

// first is the shortest pause, and turn how long a client has the turn at a node.
func (r *Repair) first() time.Duration { return r.NodeTimeout / 16 }
func (r *Repair) turn() time.Duration  { return 4 * r.NodeTimeout }

// most is how many names are brought at a time.
func (r *Repair) most() int {
	if !r.Rules.on(RuleRepairBound) {
		return math.MaxInt / 4
	}
	return repairBatch
}

// do has the client take a step for the repair of node i.
func (r *Repair) do(i int, s RepairStep) {
	s.Target = i
	r.nodes[i].busy++
	r.Out = append(r.Out, s)
}

// begin begins an attempt at node i.
func (r *Repair) begin(now Time, i int) {
	n := &r.nodes[i]
	n.stage, n.attempts, n.hurried = repairing, n.attempts+1, false
	n.attemptState = attemptState{}
	r.do(i, RepairStep{Kind: RepairLook, Node: i})
}

// end ends the attempt at node i: nothing of it is under way any more.
func (r *Repair) end(now Time, i int) {
	n := &r.nodes[i]
	n.attempted = true
	if n.turn {
		n.turn = false
		r.Out = append(r.Out, RepairStep{Kind: RepairYield, Target: i, Node: i})
	}
	switch {
	case n.finished || !n.up:
		again := n.again && n.up
		n.idle()
		if again {
			r.Look(now, i)
		}
	default:
		r.pause(now, i)
	}
}

// pause has the next attempt follow later. Every client does this: their attempts
// are spread, and get rarer while they fail.
func (r *Repair) pause(now Time, i int) {
	n := &r.nodes[i]
	if !r.Rules.on(RuleRepairRetry) {
		n.idle()
		return
	}
	longest := 4 * r.NodeTimeout
	if n.attempts >= quietAttempts {
		longest = max(longest, r.Guard/2)
	}
	n.pause = min(2*n.pause, longest)
	switch {
	case n.wait > 0 && n.hurried:
		n.wait, n.pause = 0, r.first()
	case n.wait > 0:
		n.attempts, n.pause = 1, r.NodeTimeout
	case n.err != nil || n.lacking != nil:
		r.Out = append(r.Out, RepairStep{
			Kind: RepairFailed, Target: i, Err: n.err, Nodes: n.lacking,
			Warn: n.attempts == quietAttempts && !n.forGood, // a client that lacks a right leaves the node to others
		})
	}
	n.stage = repairPaused
	n.retry = now.Add(n.wait + time.Duration(r.rng.Int64N(int64(n.pause)+1)))
}
