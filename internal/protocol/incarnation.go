package protocol

import "time"

// This file owns which replies of which node count. A reply counts if it is of
// the incarnation that the node's connection began with, and if no other
// address of this client votes with that incarnation.
//
// Each node is in one of these states. A connection begins in unknown, or in
// shared.
//
//	         Show, no duplicate       Check, another incarnation
//	unknown ---------------> voting ---------------------------> the connection ends
//	   |                       | Distrust: its clock jumped
//	   | Show, a duplicate     v
//	   +---------> copied   marking: it is made to begin another incarnation
//	                 |         ^  |
//	   which case?   +---------+  | Marked: Show decides again
//	   they are two servers       v
//	                 |         voting, copied
//	                 | not known: comparing writes a key to one and reads it at the other
//	                 +-------> shared: two addresses of one server; this one gets no vote
//
// Invariant: a reply of another incarnation than the connection began with
// never counts. Without the rule a node becomes a replica of another node and
// then a master again, on the same connection. It then has the other node's
// data, and its marker says that the node may vote. A claim that the other node
// votes for gets a second vote beside a holder that had the vote of what the
// node has lost.

// Incarnations decides which replies count, for one client. Its methods take
// the time and an event of one address. Out is what is to be done about that
// address then, in order. It is not safe for concurrent use.
type Incarnations struct {
	Out []NodeAction

	servers *Servers
	rules   Rules
	nodes   []nodeIncarnation
}

// nodeIncarnation is what is known of the data behind one address.
type nodeIncarnation struct {
	state            nodeState
	stateBefore      nodeState   // marking: the state to return to if that fails
	incarnation      Incarnation // of voting, or what a node showed that does not vote
	votedLast        Incarnation // that voted last
	same             int         // copied or shared: the address of the same server, -1 if none is known
	pushMissed       bool        // it has pushed something that could not be judged
	attempt          uint32      // counts what was begun, so that results of earlier connections are ignored
	connections      uint32      // counts connections
	otherConnections uint32      // comparing: the connections of the other address as that began
}

type nodeState uint8

const (
	unknown   nodeState = iota // the incarnation is not known
	voting                     // the node votes
	copied                     // another address votes with the incarnation
	comparing                  // it is being found out whether both reach one server
	marking                    // the node is made to begin another incarnation
	shared                     // it is the server of another address
)

// NodeActionKind is what is to be done about a node.
type NodeActionKind uint8

// The kinds of a NodeAction.
const (
	NodeVotes     NodeActionKind = iota + 1 // another incarnation votes: its clock begins as it is
	NodeMark                                // have Node begin another incarnation unless Inc is not its own any more; tell Marked
	NodeCompare                             // find out whether Node and Other are one server; tell Compared
	NodeDuplicate                           // Node is the server of Other: report it
	NodeReconnect                           // end the connection: the next one finds out
	NodeAsk                                 // ask Node about every claim
	NodeRepair                              // bring what Node may have lost
)

// NodeAction is one thing to be done about a node.
type NodeAction struct {
	Kind  NodeActionKind
	Node  int
	Other int
	Inc   Incarnation // of NodeMark; 0: whichever an earlier run of the server had
	Try   uint32      // to be passed to Marked or Compared
}

// NewIncarnations returns what a client knows of so many addresses at its
// start. No lease outlasts the guard time.
func NewIncarnations(addresses int, guard time.Duration, rules Rules) *Incarnations {
	s := &Incarnations{servers: NewServers(addresses, guard, rules), rules: rules}
	s.grow(addresses)
	return s
}

// grow has the client know so many addresses.
func (s *Incarnations) grow(addresses int) {
	s.servers.grow(addresses)
	for len(s.nodes) < addresses {
		s.nodes = append(s.nodes, nodeIncarnation{same: -1})
	}
}

// Connect says that a connection to address i begins, which reaches the given
// run of a server, empty if that is unknown. It returns the address that votes
// for that server instead, -1 if there is none. With another address the
// connection must not be used.
func (s *Incarnations) Connect(now Time, i int, run string) (other int) {
	n := &s.nodes[i]
	n.state = unknown
	n.connections++
	n.attempt++
	s.servers.Down(now, i) // a new connection to i: the last one is over
	if other = s.servers.Connect(now, i, run); other >= 0 {
		s.share(i, other)
		return other
	}
	n.same = -1
	return -1
}

// share has address i get no vote, because other has the vote of its server.
func (s *Incarnations) share(i, other int) {
	n := &s.nodes[i]
	n.state = shared
	if n.same != other {
		n.same = other
		s.do(NodeAction{Kind: NodeDuplicate, Node: i, Other: other})
	}
}

func (s *Incarnations) do(a NodeAction) { s.Out = append(s.Out, a) }

// Show says which incarnation a node has as its connection begins.
func (s *Incarnations) Show(now Time, i int, inc Incarnation) {
	n := &s.nodes[i]
	if n.incarnation = inc; s.servers.Vote(now, i, inc) >= 0 && s.rules.on(RuleCopy) {
		n.state = copied
	} else {
		n.state = voting
		if n.votedLast != inc {
			n.votedLast = inc
			s.do(NodeAction{Kind: NodeVotes, Node: i})
		}
	}
	if n.pushMissed && s.rules.on(RuleMissed) {
		n.pushMissed = false
		s.do(NodeAction{Kind: NodeAsk, Node: i})
	}
}

// Check reports whether a reply of that incarnation counts.
func (s *Incarnations) Check(now Time, i int, inc Incarnation) bool {
	n := &s.nodes[i]
	if n.state == unknown { // the connection began with a marker that could not be read
		s.Show(now, i, inc)
	}
	switch n.state {
	case voting:
		if n.incarnation == inc || !s.rules.on(RuleOwnIncarnation) {
			return true
		}
		s.do(NodeAction{Kind: NodeReconnect, Node: i})
	case copied:
		s.resolve(now, i)
	case shared:
		if s.servers.OtherAddress(now, i, n.incarnation) < 0 { // the other address has left the server
			s.do(NodeAction{Kind: NodeReconnect, Node: i})
		}
	}
	return false
}

// Len returns how many addresses there are.
func (s *Incarnations) Len() int { return len(s.nodes) }

// CheckPush reports whether a push of that incarnation counts. A push that
// comes before the incarnation is known does not: another address may vote for
// this server. The node is asked then as soon as it is known.
func (s *Incarnations) CheckPush(i int, inc Incarnation) bool {
	n := &s.nodes[i]
	if n.state == unknown {
		n.pushMissed = true
	}
	return n.state == voting && (n.incarnation == inc || !s.rules.on(RuleOwnIncarnation))
}

// Voting returns the incarnation that address i votes with, 0 if it does not
// vote.
func (s *Incarnations) Voting(i int) Incarnation {
	if n := &s.nodes[i]; n.state == voting {
		return n.incarnation
	}
	return 0
}

// Duplicate returns the address that votes for the server of address i, -1 if
// there is none.
func (s *Incarnations) Duplicate(i int) int { return s.nodes[i].same }

// Up says that a connection is ready for requests. It reports whether it is
// known that the node has its own data.
func (s *Incarnations) Up(now Time, i int) bool {
	if s.nodes[i].state == copied {
		s.resolve(now, i)
		return false
	}
	return true
}

// Down says that the connection to address i has ended.
func (s *Incarnations) Down(now Time, i int) { s.servers.Down(now, i) }

// Failed says that the connection to address i has ended before it was used.
func (s *Incarnations) Failed(i int) { s.servers.Failed(i) }

// resolve finds out about a node that has another address's incarnation. Either
// one of the two has the other's data, whose replica it was, and its own is
// lost; or both are one server. The runs of the servers tell, where they are
// known: one run under two addresses gets no second connection.
//
// Of two servers with one incarnation either may be the copy. The marker need
// not name another run: a replica's marker names none if a script has made it.
// This node begins another incarnation in either case. That suffices: for a
// guard time the two have one vote between them, and q votes without a claim's
// lost one need both.
//
// Invariant: a node whose incarnation another address has left, without INFO,
// begins another incarnation too. It may be the same server, which has lost
// nothing, or a copy, whose own data is lost. No other address can tell.
// Without the rule node 2 takes a record; 2 becomes 1's replica and a master
// again; 1 takes the record, which has a majority now, and fails; 2, with 1's
// data of before, and 3 attest that nothing is recorded. The price is a guard
// time without the vote of a server that has moved.
func (s *Incarnations) resolve(now Time, i int) {
	n := &s.nodes[i]
	duplicate, named := s.servers.OtherAddress(now, i, n.incarnation), s.servers.Run(i) != ""
	switch {
	case named && duplicate < 0: // no other address votes with it: only the data of another run is lost
		s.mark(i, 0)
	case duplicate < 0 && !s.rules.on(RuleOriginal):
		s.Show(now, i, n.incarnation)
	case duplicate < 0: // the other address has been down, or elsewhere, for a guard time: its data may have gone on without this copy
		s.mark(i, n.incarnation)
	case named && s.servers.Run(duplicate) != "":
		s.mark(i, n.incarnation)
	case s.votes(duplicate, n.incarnation) || !s.rules.on(RuleCompared):
		n.state, n.otherConnections = comparing, s.nodes[duplicate].connections
		n.attempt++
		s.do(NodeAction{Kind: NodeCompare, Node: i, Other: duplicate, Try: n.attempt})
	}
}

// votes reports whether address i votes with an incarnation.
func (s *Incarnations) votes(i int, inc Incarnation) bool {
	return s.nodes[i].state == voting && s.nodes[i].incarnation == inc
}

// Compared says whether the nodes of a NodeCompare are one server. Without ok
// it could not be found out. Then the next answer asks again.
//
// Invariant: the other address voted with the incarnation all the while.
// Without the rule it has reached another server meanwhile, which lacks the key
// that this node got. Then this node is made to begin another incarnation
// though it has lost nothing, and does not vote for a guard time.
func (s *Incarnations) Compared(i int, try uint32, other int, same, ok bool) {
	n := &s.nodes[i]
	switch {
	case n.state != comparing || n.attempt != try:
	case !ok, (s.nodes[other].connections != n.otherConnections || !s.votes(other, n.incarnation)) && s.rules.on(RuleCompared):
		n.state = copied
	case same:
		s.share(i, other)
	default:
		n.state = copied
		s.mark(i, n.incarnation)
	}
}

// mark has a node begin another incarnation.
func (s *Incarnations) mark(i int, inc Incarnation) {
	n := &s.nodes[i]
	n.stateBefore, n.state = n.state, marking
	n.attempt++
	s.do(NodeAction{Kind: NodeMark, Node: i, Inc: inc, Try: n.attempt})
}

// Marked says which incarnation a node has after a NodeMark. Without ok it
// could not be found out, and the next reply asks again.
func (s *Incarnations) Marked(now Time, i int, try uint32, inc Incarnation, ok bool) {
	n := &s.nodes[i]
	switch {
	case n.state != marking || n.attempt != try:
	case !ok:
		n.state = n.stateBefore
	default:
		s.Show(now, i, inc)
		s.do(NodeAction{Kind: NodeAsk, Node: i})
		s.do(NodeAction{Kind: NodeRepair, Node: i})
	}
}

// ClockJumped says that nothing counts that a node says in its present
// incarnation: its clock has jumped.
func (s *Incarnations) ClockJumped(i int) {
	if n := &s.nodes[i]; n.state == voting {
		s.mark(i, n.incarnation)
	}
}
