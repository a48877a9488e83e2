package repair

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Repair decides for one client which nodes it repairs, and when. Its methods
// take the time and an event. Out is what the client must do then, and Wake is
// when it needs a Tick. Every client has a Repair, whatever else it uses. It is
// not safe for concurrent use.
//
// Invariant: a node that may lack something has an attempt under way, or one to
// come.
// Invariant: a node is marked as caught up only in the incarnation in which it
// received every name that an attesting quorum of the other nodes listed after
// the node's guard time.
type Repair struct {
	NodeTimeout time.Duration
	Guard       time.Duration
	Out         []Task

	rng   *rand.Rand // spreads the attempts of many clients
	nodes []nodeRepair
	// Semaphores of which a node has missed a Resize, with the time to spread
	// the number; Never while that is in progress.
	numbers map[string]protocol.Time
}

// Task is one thing for the client to do. No event waits for it.
type Task struct {
	Attempt *Attempt // run it, then call Ended
	// If set, the task is only this: read this name's number of permits so that
	// each node that answers gets it, then call Spread.
	Number string
}

// Report is what to log about an attempt that has ended.
type Report struct {
	Names int   // that were brought to the node, which is caught up if Err is nil
	Err   error // why the attempt has failed
	Warn  bool  // an operator should know
}

type nodeRepair struct {
	up        bool // it is connected
	stage     repairStage
	again     bool // something has happened that may mean that it lost its data again
	hurried   bool // its guard time may have been ended since the attempt began
	attempts  int
	attempted bool
	pause     time.Duration
	retry     protocol.Time
	attempt   *Attempt // the last one
	known     progress
}

// repairStage is the stage of a node's repair.
type repairStage uint8

const (
	repairIdle   repairStage = iota // nothing is known to be missing there
	repairPaused                    // an attempt has failed, and the next one follows at retry
	repairing                       // an attempt is under way
)

// quietAttempts is how many attempts may fail before an operator should know.
// By default they take about ten seconds.
const quietAttempts = 24

func NewRepair(nodes int, nodeTimeout, guard time.Duration, seed uint64) *Repair {
	return &Repair{
		NodeTimeout: nodeTimeout, Guard: guard,
		rng: rand.New(rand.NewPCG(seed, 0)), nodes: make([]nodeRepair, nodes),
		numbers: map[string]protocol.Time{},
	}
}

// Grow makes room for nodes nodes.
func (r *Repair) Grow(nodes int) {
	for len(r.nodes) < nodes {
		r.nodes = append(r.nodes, nodeRepair{})
	}
}

// DecideWithin returns how long a run that decides a register may take: two
// round trips, or three if claims collide. A client that sees the name held for
// longer may take the holder for a run of the work.
func DecideWithin(nodeTimeout, ttl, trip time.Duration) time.Duration {
	return max(nodeTimeout/2, min(4*trip, ttl/2))
}

// MissedResize records that a node lacks a semaphore's newest number of
// permits, which other nodes have. The task waits for a node timeout, because a
// slow node may merely be behind a quick one.
func (r *Repair) MissedResize(now protocol.Time, name string, timeout time.Duration) {
	if _, known := r.numbers[name]; !known { //mutant:RuleRepairResize
		r.numbers[name] = now.Add(timeout)
	}
}

// Spread records that a number has been spread. If a later answer shows that a
// node lacks it, the work starts again.
func (r *Repair) Spread(name string) { delete(r.numbers, name) }

// Attempted reports whether there is no need to wait for a node: its repair was
// attempted once, or is not under way.
func (r *Repair) Attempted(node int) bool {
	n := &r.nodes[node]
	return n.stage == repairIdle || n.attempted
}

// Tick starts what is due. A late Tick is harmless: another client may get the
// turn at a node, and both copy names. That costs requests but is safe, because
// a node keeps the newest record and promise that it gets.
func (r *Repair) Tick(now protocol.Time) {
	for i := range r.nodes {
		if n := &r.nodes[i]; n.stage == repairPaused && now >= n.retry {
			r.begin(i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.numbers)) {
		if at := r.numbers[name]; now >= at && at != protocol.Never {
			r.numbers[name] = protocol.Never
			r.Out = append(r.Out, Task{Number: name})
		}
	}
}

// Wake returns when the next Tick is needed.
func (r *Repair) Wake() protocol.Time {
	w := protocol.Never
	for i := range r.nodes {
		if n := &r.nodes[i]; n.stage == repairPaused {
			w = min(w, n.retry)
		}
	}
	for _, at := range r.numbers {
		w = min(w, at)
	}
	return w
}

// Up records that a connection to a node has begun. The node may have lost its
// data since the last one. It may also be the node without which others could
// not be repaired.
func (r *Repair) Up(now protocol.Time, node int) {
	r.nodes[node].up = true
	r.RetryNow(now)
	r.Look(now, node) //mutant:RuleRepairMeet
}

// RetryNow starts the next attempt of each paused node at once. A node that it
// needs may have connected, or a change of the set may have shortened its guard
// time. An attempt under way goes on. If it fails, it has asked before the change,
// so the next one follows at once.
func (r *Repair) RetryNow(now protocol.Time) {
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

// Look starts a repair of a node if necessary: an answer showed that the node
// may have lost data, or it has a new incarnation. A repair under way looks at
// the node once more at its end.
func (r *Repair) Look(now protocol.Time, node int) {
	n := &r.nodes[node]
	switch {
	case !n.up: // the next connection begins with a look
	case n.stage != repairIdle:
		n.again = true
	default:
		n.attempts, n.attempted, n.pause = 0, false, r.first()
		r.begin(node)
	}
}

// Down ends the connection to a node. The next connection begins with a look.
// It continues with what was listed if the node still has its incarnation.
func (r *Repair) Down(_ protocol.Time, node int) {
	n := &r.nodes[node]
	if n.up = false; n.stage == repairing {
		n.attempt.over.Store(true)
		return
	}
	n.reset()
}

// Close ends the repairs. Attempts under way end after their current question,
// so that they yield their turns.
func (r *Repair) Close(now protocol.Time) {
	clear(r.numbers)
	for i := range r.nodes {
		r.Down(now, i)
	}
}

// first is the shortest pause between attempts.
func (r *Repair) first() time.Duration { return r.NodeTimeout / 16 }

func (r *Repair) begin(i int) {
	n := &r.nodes[i]
	n.stage, n.attempts, n.hurried = repairing, n.attempts+1, false
	n.attempt = &Attempt{Node: i, turn: 4 * r.NodeTimeout, known: n.known, err: errLater}
	r.Out = append(r.Out, Task{Attempt: n.attempt})
}

// Ended records how an attempt ended, and starts or schedules the next one if
// one is needed. It returns what to log, or nil.
func (r *Repair) Ended(now protocol.Time, a *Attempt) (report *Report) {
	n := &r.nodes[a.Node]
	n.attempted, n.known = true, a.known
	if a.caughtUp {
		n.known = progress{}
	}
	if a.marked {
		report = &Report{Names: a.known.total}
	}
	if n.up && !a.caughtUp {
		return r.pauseAfter(now, a)
	}
	again := n.again && n.up
	if n.reset(); again {
		r.Look(now, a.Node)
	}
	return report
}

// pauseAfter schedules the next attempt. Every client does this, so attempts
// are spread, and become rarer while they fail.
func (r *Repair) pauseAfter(now protocol.Time, a *Attempt) (report *Report) {
	n := &r.nodes[a.Node]
	longest := 4 * r.NodeTimeout
	if n.attempts >= quietAttempts {
		longest = max(longest, r.Guard/2)
	}
	n.pause = min(2*n.pause, longest)
	wait := a.wait
	switch {
	case a.over.Load(): // the connection that has begun meanwhile begins with a look
		wait = 0
	case wait > 0:
		n.attempts, n.pause = 1, r.NodeTimeout
	case a.err != errLater:
		// A client that lacks a right leaves the node to others.
		report = &Report{Err: a.err, Warn: n.attempts == quietAttempts && !a.permanent}
	}
	if n.hurried {
		wait, n.pause = 0, r.first()
	}
	n.stage = repairIdle
	n.stage = repairPaused //mutant:RuleRepairRetry
	n.retry = now.Add(wait + time.Duration(r.rng.Int64N(int64(n.pause)+1)))
	return report
}

// reset ends the repair, but keeps the connection and what was listed.
func (n *nodeRepair) reset() { *n = nodeRepair{up: n.up, known: n.known} }
