package nodeset

import (
	"slices"

	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// Which replies of a node count. Each node is in one of these states; a
// connection starts in unknown.
//
//	         Show           Check, another incarnation
//	unknown ------> voting ---------------------------> the connection ends
//	   | Show,       ^  | Distrust: its clock jumped
//	   | an old      |  |
//	   v      Marked |  v
//	returned <--> marking: the node is asked to begin another incarnation
//	          Up, Check; Marked without ok
//
// Invariant: a reply never counts if its incarnation is not the one that the
// connection began with. Otherwise a node that was briefly another node's
// replica would vote with that node's data.
//
// Invariant: an incarnation that was followed by another one never counts
// again. An earlier memory can return within one run of the server, whose
// marker then names the current run: after two SWAPDBs, or if the address
// pointed to another server for a while. The node has forgotten what it did in
// between.

// Incarnations decides which replies count, for one client. Each method takes
// an event of one node and appends to Out what to do about that node, in order.
// It is not safe for concurrent use.
type Incarnations struct {
	Out []NodeAction

	nodes []nodeIncarnation
}

// nodeIncarnation is what the client knows about the data behind one
// connection.
type nodeIncarnation struct {
	state       nodeState
	incarnation protocol.Incarnation   // the one that votes or, while marking, the one to be replaced
	votedLast   protocol.Incarnation   // the last one that voted
	ended       []protocol.Incarnation // the most recent ones that voted before it
	attempt     uint32                 // counts connections and marks, so that late results are ignored
}

type nodeState uint8

const (
	unknown  nodeState = iota // the incarnation is not known
	voting                    // the node votes
	returned                  // it shows an incarnation that has ended
	marking                   // the node is asked to begin another incarnation
)

// NodeActionKind is what to do about a node.
type NodeActionKind uint8

const (
	NodeVotes NodeActionKind = iota + 1 // a new incarnation votes: forget what is known of its clock
	// Make Node begin another incarnation if it still has Inc, then call
	// Marked.
	NodeMark
	NodeReconnect // end the connection: the next one shows the incarnation
	NodeAsk       // ask Node about every claim
	NodeRepair    // copy to Node what it may have lost
)

type NodeAction struct {
	Kind NodeActionKind
	Node int
	Inc  protocol.Incarnation // for NodeMark
	Try  uint32               // pass this to Marked
}

func NewIncarnations(nodes int) *Incarnations {
	s := &Incarnations{}
	s.Grow(nodes)
	return s
}

func (s *Incarnations) Grow(nodes int) {
	for len(s.nodes) < nodes {
		s.nodes = append(s.nodes, nodeIncarnation{})
	}
}

// Connect starts a new connection to node i.
func (s *Incarnations) Connect(i int) {
	n := &s.nodes[i]
	n.state = unknown
	n.attempt++
}

func (s *Incarnations) do(a NodeAction) { s.Out = append(s.Out, a) }

// mostEnded is how many ended incarnations are remembered: 32 KiB for each
// node. There can be many short ones, for example if a server is restarted
// every second, and an earlier memory could still return after all of them.
const mostEnded = 4096

// Show takes the incarnation that a node has when its connection begins.
func (s *Incarnations) Show(i int, inc protocol.Incarnation) {
	if invariant.On {
		defer s.check(i)
	}
	n := &s.nodes[i]
	n.state, n.incarnation = voting, inc
	switch {
	case n.votedLast == inc:
	case slices.Contains(n.ended, inc): //mutant:RuleReturned
		n.state = returned
	default:
		if n.votedLast != 0 {
			n.ended = append(n.ended[max(0, len(n.ended)-mostEnded+1):], n.votedLast)
		}
		n.votedLast = inc
		s.do(NodeAction{Kind: NodeVotes, Node: i})
	}
}

// Up is called when a connection is ready for requests, and now and then after
// that: a node may have refused to begin another incarnation.
func (s *Incarnations) Up(i int) {
	if s.nodes[i].state == returned {
		s.mark(i)
	}
}

// Check reports whether a reply with incarnation inc counts.
func (s *Incarnations) Check(i int, inc protocol.Incarnation) bool {
	n := &s.nodes[i]
	if n.state == unknown { // the marker was unreadable when the connection began
		s.Show(i, inc)
		s.Up(i)
	}
	if n.state != voting {
		return false
	}
	if n.incarnation == inc { //mutant:RuleOwnIncarnation=true
		return true
	}
	s.do(NodeAction{Kind: NodeReconnect, Node: i})
	return false
}

func (s *Incarnations) Len() int { return len(s.nodes) }

// CheckPush reports whether a push with incarnation inc counts. A push does not
// count before the incarnation is known. Nothing is lost by that: each claim
// asks when a connection begins, and the answer contains what the push said.
func (s *Incarnations) CheckPush(i int, inc protocol.Incarnation) bool {
	n := &s.nodes[i]
	return n.state == voting &&
		n.incarnation == inc //mutant:RuleOwnIncarnation
}

// Voting returns the incarnation that node i votes with, or 0 if it does not
// vote.
func (s *Incarnations) Voting(i int) protocol.Incarnation {
	if n := &s.nodes[i]; n.state == voting {
		return n.incarnation
	}
	return 0
}

// Distrust stops counting replies of node i's current incarnation, because its
// clock jumped, and asks the node to begin a new one. No-op unless the node
// votes.
func (s *Incarnations) Distrust(i int) {
	if s.nodes[i].state == voting {
		s.mark(i)
	}
}

func (s *Incarnations) mark(i int) {
	n := &s.nodes[i]
	n.state = marking
	n.attempt++
	s.do(NodeAction{Kind: NodeMark, Node: i, Inc: n.incarnation, Try: n.attempt})
}

// Marked takes the incarnation that a node has after a NodeMark. ok is false if
// it could not be found out.
func (s *Incarnations) Marked(i int, try uint32, inc protocol.Incarnation, ok bool) {
	if invariant.On {
		defer s.check(i)
	}
	n := &s.nodes[i]
	switch {
	case n.state != marking || n.attempt != try:
	case !ok && n.incarnation != n.votedLast:
		n.state = returned // Up will ask again
	case !ok:
		n.state = voting // its clock remains in doubt
	default: // another incarnation has begun on the existing connection
		s.Show(i, inc)
		s.do(NodeAction{Kind: NodeAsk, Node: i})
		s.do(NodeAction{Kind: NodeRepair, Node: i})
	}
}
