package repair

// This file owns what a repair asks of its client: the steps, and the forms of
// a step and of its result.
// Invariant: each step up to RepairSpread gets exactly one Done.

import (
	"errors"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"time"
)

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
var ErrUndecided = errors.New("the register is undecided")
