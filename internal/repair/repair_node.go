package repair

import (
	"github.com/quorate/quorate/internal/protocol"
	"time"
)

// This file owns what is known of the repair of one node.
// Invariant: what an attempt has learnt ends with it (attemptState), but for
// the names, which are those of one incarnation. A name that was brought in an
// earlier incarnation is forgotten again (repair-begins-again.txt).

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

// missing is how many names the node still lacks, -1 while that is being found
// out.
func (n *nodeRepair) missing() int {
	if !n.listed {
		return -1
	}
	return len(n.names)
}

// idle ends the repair. What was listed stays unless the node is caught up.
func (n *nodeRepair) idle() {
	was := *n
	*n = nodeRepair{up: was.up, busy: was.busy}
	if !was.finished {
		n.incarnation, n.listed, n.names, n.total, n.batch = was.incarnation, was.listed, was.names, was.total, was.batch
	}
}
