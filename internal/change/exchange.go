package change

import (
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// When a set moves on to the next configuration of a change, and when the
// change is given up. steps.go makes the configurations.

// ExchangeOutcome is the outcome of an Exchange.
type ExchangeOutcome uint8

// The outcomes.
const (
	ExchangeGoesOn ExchangeOutcome = iota
	ExchangeDone                   // the set is as wanted, and a majority of it serves it
	ExchangeUndone                 // the change was given up, by this client or by another one
	ExchangeUnfit                  // the change makes no sense for the set
)

// Exchange decides, for the client that exchanges nodes, what the next
// configuration is and when it may be proposed. If another client left an
// exchange half-way, it finishes that one first. It is not safe for concurrent
// use.
//
// The successor of a configuration is decided by a majority of the nodes that
// stay or leave. It is recorded in a register next to the claims, see
// SuccessorName.
//
// Invariant: the new set counts alone only when no client can hold by the old
// set alone any more: its leases have ended a guard time after a majority of
// the old set began to refuse its requests. By then the old set's fences are
// also older than any ticket that the new set gives.
type Exchange struct {
	Goal Goal // the zero value: what is under way is ended, and nothing else is begun
	Undo bool // what is under way is given up. It may be set at any time

	// Patience is how long a node that enters may be silent before the change
	// is given up; 0: it never is.
	Patience time.Duration

	config *nodeset.Configuration
	read   bool          // nothing followed config when its register was read
	rounds int           // in which something could be proposed
	begun  bool          // the change has begun to be carried out
	sent   bool          // it was proposed to follow config, and what has become of that is not known
	gone   int           // the member because of which it is given up, from 1 on
	away   time.Duration // how long that has been silent
	// When a majority of the nodes that stay or leave had been seen to have
	// moved to config; 0: not yet.
	moved  protocol.Time
	began  protocol.Time // since when such a majority serves it all at once; 0: it is not known to
	follow time.Duration // how long clients have to follow to config, see Follows
	nodes  []exchanging  // by member
}

type exchanging struct {
	moved  bool
	stays  bool          // it has been seen to serve config after a majority had moved
	votes  bool          // its guard time is over
	caught bool          // it has been caught up since it has moved
	silent protocol.Time // since when it has not answered; 0: it has
}

// Decided takes a configuration that has been decided.
func (e *Exchange) Decided(c *nodeset.Configuration) {
	if e.follow = 0; e.config != nil && c.Stage == nodeset.Stable && vacates(c, e.config) { //mutant:RuleExchangeFollow
		e.follow = max(e.config.Guard(), c.Guard()) / 2
	}
	e.config, e.read, e.sent, e.moved, e.began, e.nodes = c, false, false, 0,
		0, make([]exchanging, len(c.Members))
	e.NoteBegun(c)
}

// NoteBegun records whether the change has begun with a configuration that was
// decided. The client may never count on that configuration: another client may
// undo it first.
func (e *Exchange) NoteBegun(c *nodeset.Configuration) {
	e.begun = e.begun || c.Stage != nodeset.Stable && has(c, e.Goal, true)
}

// Follows returns how long clients still have to follow to the configuration
// that was decided last. Meanwhile the servers that left it must run.
//
// Invariant: a change that takes an address away is over when each connected
// client has asked a node that has moved: half a guard time is longer than any
// ttl. Without that the servers that left are stopped, or the next change takes
// another address away, and a client finds no majority of the members that it
// knows any more. It waits for good.
func (e *Exchange) Follows(now protocol.Time) time.Duration {
	if e.moved == 0 {
		return e.follow
	}
	return max(0, e.follow-now.Sub(e.moved))
}

// wait returns how long Jointly lasts at least: the guard time, as clocks of
// any speed and of any node show it. It is the set's, whatever the operator's
// process has.
func (e *Exchange) wait() time.Duration {
	guard := e.config.Guard()
	return guard + guard/50 + 2*e.config.Skew() //mutant:ConstExchangeWait
}

// Mine reports whether the change under way is the goal, or may be.
func (e *Exchange) Mine() bool {
	return e.config != nil && (e.begun && e.config.Stage != nodeset.Stable || e.sent)
}

// Left returns how much longer Jointly must last.
func (e *Exchange) Left(now protocol.Time) time.Duration {
	switch {
	case e.config == nil:
		return 0
	case e.config.Stage != nodeset.Jointly || e.began == 0:
		return e.wait()
	}
	return max(0, e.wait()-now.Sub(e.began))
}

// Read records that no successor of the configuration had been decided when its
// register was read.
func (e *Exchange) Read() { e.read, e.sent = true, false }

// Outcome returns what has become of the exchange.
//
// Invariant: to give up whatever is under way is over when the register has
// been read. An operator that died may have decided a change that no node shows
// yet, and so may this call have. Without the rule the next exchange begins
// with that change, though it was given up.
func (e *Exchange) Outcome() ExchangeOutcome {
	wants := !e.Goal.Empty()
	switch {
	case !e.Over():
		return ExchangeGoesOn
	case has(e.config, e.Goal, false) && (!e.Undo || wants):
		return ExchangeDone
	case e.Undo && (!wants || e.sent) && !e.read: //mutant:RuleExchangeRead
		return ExchangeGoesOn
	case e.Undo || e.begun:
		return ExchangeUndone
	case !Fits(e.config, e.Goal):
		return ExchangeUnfit
	}
	return ExchangeGoesOn
}

// readOneIn is how often the register is read although nothing is proposed:
// once in so many rounds.
const readOneIn = 8

// Propose returns what is to follow the configuration that was decided last,
// nil if it is to stay for now, and whether the register is to be asked. It is
// asked now and then in any case: a client that died may have decided what
// follows, and no node shows that yet.
func (e *Exchange) Propose(now protocol.Time, b nodeset.Ballot) (next *nodeset.Configuration, ask bool) {
	if e.config == nil {
		return nil, false
	}
	e.lose(now)
	if e.Follows(now) == 0 {
		e.follow = 0
	}
	if e.Outcome() != ExchangeGoesOn {
		return nil, false
	}
	e.rounds++
	next = e.propose(now, b)
	if next != nil && e.config.Stage == nodeset.Stable {
		e.sent, e.read = true, false
	}
	return next, next != nil || e.rounds%readOneIn == 1 || e.config.Stage == nodeset.Stable && e.Undo && e.Over()
}

func (e *Exchange) propose(now protocol.Time, b nodeset.Ballot) *nodeset.Configuration {
	switch {
	case e.config.Stage == nodeset.Stable && e.Over() && !e.Undo:
		return Begin(e.config, e.Goal, b)
	case e.config.Stage != nodeset.Stable && e.Undo:
		return Undo(e.config, b)
	case !e.Next(now):
		return nil
	case e.config.Stage == nodeset.Learning:
		return Join(e.config, b)
	}
	return Finish(e.config, b)
}

// lose gives the change up if a node that enters has been silent for too long.
// A change that another client began is left to that client or to an operator.
func (e *Exchange) lose(now protocol.Time) {
	for i := range e.nodes {
		n := &e.nodes[i]
		if e.Patience > 0 && e.Mine() && !e.Undo && e.Awaits(i) && now.Sub(n.silent) > e.Patience {
			e.Undo, e.gone, e.away = true, i+1, now.Sub(n.silent)
		}
	}
}

// Awaits reports whether a member is entering and does not answer.
func (e *Exchange) Awaits(member int) bool {
	return e.config.Stage != nodeset.Stable && e.config.Members[member].Role == nodeset.Enters &&
		e.nodes[member].silent != 0
}

// GaveUp returns the member because of which the change was given up, and for
// how long that had been silent. It is -1 if there is none.
func (e *Exchange) GaveUp() (member int, silent time.Duration) { return e.gone - 1, e.away }

// Moved records that a member served the latest decided configuration when it
// was asked. saved means that it will serve it after a restart as well, or come
// back empty; see Saves.
//
// Invariant: a majority serves that configuration at the same moment, and
// therefore permanently. Without the second look, this could happen: A moves,
// loses its data, and gets its place in the earlier configuration from the
// reports of B and C, which have not moved. Then B moves. A and C still serve
// the earlier configuration while the new set counts without them
// (TestAMajorityServesAtOneMoment).
//
// Invariant: each node of that majority also serves it after a restart.
// Otherwise A could come back with an older file that has the earlier
// configuration (aim exchange regress).
func (e *Exchange) Moved(now, asked protocol.Time, member int, saved bool) {
	n := &e.nodes[member]
	n.moved = true
	saved = saved || e.config.Stage != nodeset.Jointly             //mutant:RuleExchangeSaved=true
	n.stays = n.stays || e.moved != 0 && asked >= e.moved && saved //mutant:RuleExchangeStays=true
	if e.moved == 0 && e.majority(nodeset.Enters, func(n *exchanging) bool { return n.moved }) {
		e.moved = now
	}
	if e.began == 0 && e.majority(nodeset.Enters, func(n *exchanging) bool { return n.stays }) {
		e.began = now
	}
}

// Saves reports whether a member must have its move on disk: it stays or
// leaves, and the next configuration is the new set alone.
func (e *Exchange) Saves(member int) bool {
	jointly := e.config != nil && e.config.Stage == nodeset.Jointly
	return jointly && e.config.Members[member].Role != nodeset.Enters && e.began == 0 //mutant:RuleExchangeSaved=false
}

// Silent records that a member does not answer: it may have lost its data since
// its last answer.
//
// Invariant: a member counts for the next configuration by its last answer, and
// only while it answers. Otherwise the new set could count alone by a member
// that was caught up, crashed and comes back empty: no node of that set would
// have what was recorded.
func (e *Exchange) Silent(now protocol.Time, member int) {
	n := &e.nodes[member]
	n.votes, n.caught = false, false //mutant:RuleExchangeSilent
	if n.silent == 0 {
		n.silent = now
	}
}

// Looked takes what a member that serves the configuration reports about
// itself.
func (e *Exchange) Looked(member int, votes, caughtUp bool) {
	n := &e.nodes[member]
	n.votes, n.caught, n.silent = votes, caughtUp, 0
}

// majority reports whether a majority of the members without a role is as
// wanted.
func (e *Exchange) majority(without nodeset.Role, is func(n *exchanging) bool) bool {
	all, have := 0, 0
	for i := range e.nodes {
		if e.config.Members[i].Role == without {
			continue
		}
		all++
		if is(&e.nodes[i]) {
			have++
		}
	}
	return 2*have > all
}

// Next reports whether the next configuration may be proposed now: Join after
// Learning, Finish after Jointly.
func (e *Exchange) Next(now protocol.Time) bool {
	if e.config == nil || e.config.Stage == nodeset.Stable || e.began == 0 {
		return false
	}
	if e.config.Stage == nodeset.Learning {
		return e.learnt() //mutant:RuleExchangeLearn=true
	}
	ready := e.majority(nodeset.Leaves, func(n *exchanging) bool {
		return n.moved && n.votes &&
			n.caught //mutant:RuleExchangeCaughtUp
	})
	return ready &&
		now.Sub(e.began) >= e.wait() //mutant:RuleExchangeWait
}

// learnt reports whether each node that enters has received what the others
// have. A node that cannot be reached holds up the exchange until the operator
// gives it up.
func (e *Exchange) learnt() bool {
	for i := range e.nodes {
		if n := &e.nodes[i]; e.config.Members[i].Role == nodeset.Enters && !(n.moved && n.votes && n.caught) {
			return false
		}
	}
	return true
}

// Over reports whether a majority of the new set has moved to it and clients
// have had the time to follow. Then a second change may begin, and the removed
// servers may be stopped.
func (e *Exchange) Over() bool {
	return e.config != nil && e.config.Stage == nodeset.Stable && e.follow == 0 &&
		e.majority(nodeset.Enters, func(n *exchanging) bool { return n.moved })
}
