package repair

import (
	"errors"
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns what is known of the repair of one node, and the forms of its
// steps and of their results.
// Invariant: each step up to RepairSpread gets exactly one Done.
// Invariant: what an attempt has learnt ends with it (attemptState), but for
// the names, which are those of one incarnation. A name that was brought in an
// earlier incarnation is forgotten again (repair-begins-again.txt).

// RepairKind is what a step of a repair does.
type RepairKind uint8

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
	Incarnation protocol.Incarnation
	For         time.Duration
	Count       int     // names; of RepairStay -1 while they are being listed
	Err         error   // of RepairFailed: why; nil: too few of the other nodes can be asked
	Nodes       []error // and then per node why it cannot be; nil: it can
	Warn        bool    // of RepairFailed: an operator should know
	Succession  bool    // of RepairRead and RepairDecide: Name is the register of SuccessorName

	decided bool // of RepairRead: after a RepairDecide
}

func (s *RepairStep) Reported() bool { return s.Kind < RepairYield }

// RepairResult is what has become of a step.
type RepairResult struct {
	Err     error // the step has failed
	ForGood bool  // it will fail the next time, too: this client lacks a right
	OK      bool  // of RepairTurn, RepairDecide and RepairMark

	Incarnation protocol.Incarnation // of RepairLook and the next three
	Run         string               // of the server
	CaughtUp    bool                 // the marker says so
	Kept        bool                 // so it does that the node was caught up before it entered, and has lost nothing since
	Wait        time.Duration        // for the end of the node's guard time

	Names   []string // of RepairList: more names, and where the next portion begins; "0": there is none
	Cursor  string
	Outcome lease.Outcome // of RepairRead
}

// errNoMember is why a node is not asked that has no vote.
var errNoMember = errors.New("is not a member of the set")

// ErrUndecided is why a name cannot be brought to a node while its register is
// undecided.
var ErrUndecided = errors.New("the record is undecided")

type nodeRepair struct {
	attemptState
	up        bool // it is connected
	stage     repairStage
	again     bool // something has happened that may mean that it lost its data again
	hurried   bool // its guard time may have been ended since the attempt began
	attempts  int
	attempted bool
	busy      int // steps under way
	pause     time.Duration
	retry     protocol.Time

	incarnation protocol.Incarnation // in which it is repaired
	listed      bool
	names       []string // that are not brought there yet
	total       int
	batch       int // names at a time
}

// attemptState is what an attempt knows beyond that.
type attemptState struct {
	finished bool // the node is caught up
	failed   bool
	err      error
	forGood  bool
	lacking  []error       // per node: why it cannot list its names, where too few can
	wait     time.Duration // for the end of the guard time
	kept     bool          // it has kept its data since it entered

	turn    bool
	prolong protocol.Time

	others  []repairPeer
	listing int // the node whose names are being listed, counted from 1
	found   map[string]struct{}

	sent int      // names of the batch
	out  int      // of these under way
	left []string // of these that could not be brought
	why  error
}

// repairStage is how far the repair of a node is.
type repairStage uint8

const (
	repairIdle   repairStage = iota // nothing is known to be missing there
	repairPaused                    // an attempt has failed, and the next one follows at retry
	repairing                       // an attempt is under way
)

// repairPeer is another node that may know what the node has forgotten.
type repairPeer struct {
	err         error
	looked      bool
	listed      bool
	caughtUp    bool
	incarnation protocol.Incarnation
	run         string
	size        int // bytes of the names that it has listed
	portions    int
}

// fail notes the first reason why the attempt cannot go on. Steps that are
// under way are still waited for, so that a result of this attempt is never
// taken for one of the next.
func (n *nodeRepair) fail(err error, forGood bool) {
	if !n.failed {
		n.failed, n.err, n.forGood = true, err, forGood
	}
}

// idle ends the repair. What was listed stays unless the node is caught up.
func (n *nodeRepair) idle() {
	was := *n
	*n = nodeRepair{up: was.up, busy: was.busy}
	if !was.finished {
		n.incarnation, n.listed, n.names, n.total, n.batch = was.incarnation, was.listed, was.names, was.total, was.batch
	}
}
