package process

import (
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"time"
)

// This file owns what a Client has its runtime do.

type ActionKind uint8

// The kinds of an Action. The runtime carries them out in the order in which it
// gets them. From ActJumped on they change nothing: the runtime reports them.
const (
	ActWake      ActionKind = iota + 1 // call Tick at At, or as soon after as may be
	ActAsk                             // give Up(Node) to every claim and every operation on a record
	ActGone                            // give Down(Node) to every claim
	ActEarly                           // give Early(Nodes, By) to every claim, and Early(By) to every operation on a record
	ActTime                            // ask Nodes for their time, and whether they serve the configuration; tell Time, and Membership.Refused
	ActMark                            // have Node begin another incarnation unless Incarnation is not its own any more; tell Marked
	ActReconnect                       // end the connection to Node: the next one finds out
	ActStep                            // take Step; tell StepDone, except after RepairYield, RepairFailed and RepairDone
	ActJumped                          // Node's clock has jumped by By
	ActDoubted                         // Node's clock or this process's has
	ActStood                           // this process's clock has stood still for By
)

// Action is one thing that a Client has its runtime do. A Client returns
// actions instead of calling the runtime. So the simulator can drive it, and
// none of its locks is held while the runtime takes locks of claims.
// Invariant: an action may be carried out late. Its answer is judged by the
// state at the time of the answer: Try and Incarnation say what the question
// was about, and an answer to a question that is over changes nothing.
type Action struct {
	Kind        ActionKind
	Node        int
	Nodes       uint32 // a bit for each
	By          time.Duration
	At          protocol.Time
	Incarnation protocol.Incarnation
	Try         uint32 // to be passed back
	Step        *repair.RepairStep
}
