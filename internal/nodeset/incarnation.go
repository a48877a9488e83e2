package nodeset

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns which replies of which node count. Each node is in one of
// these states. A connection begins in unknown.
//
//	         Show           Check, another incarnation
//	unknown ------> voting ---------------------------> the connection ends
//	   | Show,       ^  | ClockJumped: its clock jumped
//	   | an old      |  |
//	   v      Marked |  v
//	returned <--> marking: it is made to begin another incarnation
//	          Up, Check; Marked without ok
//
// Invariant: a reply of another incarnation than the connection began with
// never counts. Without the rule a node that was another's replica for a moment
// votes with the data of that one.
//
// Invariant: an incarnation that another one has followed never counts again.
// The memory of before has come back in one run of the server, so its marker
// names that run: by SWAPDB twice, or as the address led to another server
// meanwhile. What the node did in between is forgotten.

// Incarnations decides which replies count, for one client. Its methods take an
// event of one node. Out is what is to be done about that node then, in order.
// It is not safe for concurrent use.
type Incarnations struct {
	Out []NodeAction

	nodes []nodeIncarnation
}

// nodeIncarnation is what is known of the data behind one connection.
type nodeIncarnation struct {
	state       nodeState
	incarnation protocol.Incarnation   // of voting, or what a node showed that is marked
	votedLast   protocol.Incarnation   // that voted last
	ended       []protocol.Incarnation // that voted before, the latest ones
	attempt     uint32                 // counts what was begun, so that results of earlier connections are ignored
}

type nodeState uint8

const (
	unknown  nodeState = iota // the incarnation is not known
	voting                    // the node votes
	returned                  // it shows an incarnation that has ended
	marking                   // the node is made to begin another incarnation
)

// NodeActionKind is what is to be done about a node.
type NodeActionKind uint8

const (
	NodeVotes     NodeActionKind = iota + 1 // another incarnation votes: its clock begins as it is
	NodeMark                                // have Node begin another incarnation unless Inc is not its own any more; tell Marked
	NodeReconnect                           // end the connection: the next one finds out
	NodeAsk                                 // ask Node about every claim
	NodeRepair                              // bring what Node may have lost
)

type NodeAction struct {
	Kind NodeActionKind
	Node int
	Inc  protocol.Incarnation // of NodeMark
	Try  uint32               // to be passed to Marked
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

// Connect says that a connection to node i begins.
func (s *Incarnations) Connect(i int) {
	n := &s.nodes[i]
	n.state = unknown
	n.attempt++
}

func (s *Incarnations) do(a NodeAction) { s.Out = append(s.Out, a) }

// mostEnded is how many incarnations are kept that have ended: 32 KiB a node.
// They may be short, as where a server is restarted each second, while the
// memory of one before them all is still to come back.
const mostEnded = 4096

// Show says which incarnation a node has as its connection begins.
func (s *Incarnations) Show(i int, inc protocol.Incarnation) {
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

// Up says that a connection is ready for requests, or has been for a while: a
// node may have refused to begin another incarnation.
func (s *Incarnations) Up(i int) {
	if s.nodes[i].state == returned {
		s.mark(i)
	}
}

// Check reports whether a reply of that incarnation counts.
func (s *Incarnations) Check(i int, inc protocol.Incarnation) bool {
	n := &s.nodes[i]
	if n.state == unknown { // the connection began with a marker that could not be read
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

// CheckPush reports whether a push of that incarnation counts. A push that
// comes before the incarnation is known does not: each claim asks as a
// connection begins, and that answer says what the push did.
func (s *Incarnations) CheckPush(i int, inc protocol.Incarnation) bool {
	n := &s.nodes[i]
	return n.state == voting &&
		n.incarnation == inc //mutant:RuleOwnIncarnation
}

// Voting returns the incarnation that node i votes with, 0 if it does not vote.
func (s *Incarnations) Voting(i int) protocol.Incarnation {
	if n := &s.nodes[i]; n.state == voting {
		return n.incarnation
	}
	return 0
}

// ClockJumped says that nothing counts that a node says in its present
// incarnation: its clock has jumped. The node is made to begin another one.
func (s *Incarnations) ClockJumped(i int) {
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

// Marked says which incarnation a node has after a NodeMark. Without ok it
// could not be found out.
func (s *Incarnations) Marked(i int, try uint32, inc protocol.Incarnation, ok bool) {
	n := &s.nodes[i]
	switch {
	case n.state != marking || n.attempt != try:
	case !ok && n.incarnation != n.votedLast:
		n.state = returned // Up asks again
	case !ok:
		n.state = voting // its clock is in doubt still
	default: // another incarnation has begun on the connection that there is
		s.Show(i, inc)
		s.do(NodeAction{Kind: NodeAsk, Node: i})
		s.do(NodeAction{Kind: NodeRepair, Node: i})
	}
}
