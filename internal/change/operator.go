package change

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns one call of an operator that changes a set: the rounds in
// which the members are looked at, the steps that follow from them, and the
// three ways in which the call ends without its change. What may follow a
// configuration is in exchange.go, how it is decided in succession.go, and what
// is waited for in progress.go.
//
// Invariant: a call that ends leaves a set that serves. Each configuration on
// the way counts a quorum of the old members, of the new ones, or of both. So a
// call may die between any two steps, and the next call goes on or undoes it.

// OperatorStepKind is what is to be done.
type OperatorStepKind uint8

// The kinds.
const (
	OperatorLook     OperatorStepKind = iota // read Member's marker as one of Stamp and, with Disk, what it says of its disk; tell Looked
	OperatorSnapshot                         // have Member write a snapshot; tell Begun
	OperatorSucceed                          // carry out Succession; tell Succeeded
)

// OperatorStep is one thing that is to be done. All of a round may be done at
// once, and each has one answer. Its runtime bounds a look, and what Disk
// asks, by the time that Member has to answer.
type OperatorStep struct {
	Kind       OperatorStepKind
	Member     nodeset.Member
	Stamp      nodeset.Stamp
	Disk       bool
	Again      bool // of OperatorSnapshot: the last one that this call has had written has failed
	Succession *Succession

	round int
	place int
}

// MemberLook is what a look has shown. A node that does not serve the
// configuration has no key of its stamp: it is silent, and what it says of an
// earlier configuration never counts for this one (rule 16).
type MemberLook struct {
	Silent   bool
	Refused  bool          // it refuses for good
	Wait     time.Duration // of its guard time
	CaughtUp bool
	Disk     Persistence
}

// Operator is one call that changes a set. Its methods take the time and an
// event, Out is what is to be done then, and Wake is when it wants a Tick. It
// is not safe for concurrent use.
type Operator struct {
	Exchange
	TTL, NodeTimeout time.Duration
	Fanout           *lease.Fanout
	Ballot           func() nodeset.Ballot // of now
	Out              []OperatorStep

	Progress OperatorProgress // of the last round
	Why      OperatorWhy
	Member   string        // of Why
	Away     time.Duration // of WhySilent

	disks   []disk // of the members of the configuration that Exchange knows
	looks   []MemberLook
	asked   protocol.Time // when the round began; 0: none has
	round   int
	due     int           // looks without an answer
	busy    bool          // a Succession is under way
	again   protocol.Time // when the next round begins
	limit   protocol.Time // when a change that is given up is left as it is; 0: it is not given up
	refused bool          // by a node, for good, so that no other round can help
	given   bool          // Why is set
	only    bool          // nothing is wanted but to undo what is under way
	end     OperatorEnd
}

// End returns how the call has ended.
func (o *Operator) End() OperatorEnd { return o.end }

// Config returns the configuration that the call counts on, nil if none.
func (o *Operator) Config() *nodeset.Configuration { return o.config }

// pause is the time between the beginnings of two rounds. A round asks each
// member once, so it is a few commands per second for the length of the change.
// Undoing has a bound, so it goes on more often.
func (o *Operator) pause() time.Duration {
	d := o.NodeTimeout / 2
	if o.limit != 0 {
		d /= 2
	}
	return max(d, time.Millisecond) //mutant:ConstRound
}

// Wake returns when a Tick is wanted.
func (o *Operator) Wake() protocol.Time {
	wake := protocol.Never
	switch {
	case o.end != OperatorGoesOn:
		return wake
	case o.limit != 0:
		wake = o.limit
	}
	if o.due == 0 && !o.busy {
		wake = min(wake, o.again)
	}
	return wake
}

// Tick lets time pass. c is what the client counts on now, nil if every node of
// its list has lost its data.
//
// Invariant: c is read once in a round, at its beginning. What the nodes say is
// about that one, and what is proposed follows it. If another client's step
// begins to count meanwhile, what is proposed comes to nothing: see
// RuleSetSuccessor.
func (o *Operator) Tick(now protocol.Time, c *nodeset.Configuration) {
	switch {
	case o.end != OperatorGoesOn:
	case o.limit != 0 && now >= o.limit:
		o.end = OperatorLeft
	case o.due > 0 || o.busy || now < o.again:
	default:
		o.begin(now, c)
	}
}

// begin begins a round.
func (o *Operator) begin(now protocol.Time, c *nodeset.Configuration) {
	o.again = now.Add(o.pause())
	if c == nil {
		return
	}
	o.count(now, c)
	o.round++
	o.asked, o.due, o.looks = now, len(c.Members), make([]MemberLook, len(c.Members))
	for k, m := range c.Members {
		o.Out = append(o.Out, OperatorStep{
			Kind: OperatorLook, Member: m, Stamp: c.Stamp, Disk: o.Saves(k) && !o.disks[k].settled, round: o.round, place: k,
		})
	}
}

// count has the call count on the configuration that the client counts on. The
// pointer tells one configuration from another: each step makes a new one.
func (o *Operator) count(now protocol.Time, c *nodeset.Configuration) {
	if c == o.config {
		return
	}
	if o.config == nil {
		// Patience bounds how long the call waits for a node that enters and
		// does not answer any more. A guard time is enough for a server that
		// restarts.
		silent := patience * o.NodeTimeout //mutant:ConstPatience
		o.Patience = max(c.Guard(), silent)
		o.only = o.Undo
	}
	o.Decided(c)
	o.disks = make([]disk, len(c.Members))
}

// patience is how many node timeouts a node that enters may be silent at least.
const patience = 20

// Looked takes what a look has shown.
func (o *Operator) Looked(now protocol.Time, s OperatorStep, l MemberLook) {
	if s.round != o.round || o.end != OperatorGoesOn || o.due == 0 {
		return
	}
	o.looks[s.place] = l
	if o.due--; o.due > 0 {
		return
	}
	refused, guard := uint32(0), time.Duration(0) // the longest that a node has left which enters
	for k, l := range o.looks {
		m := &o.config.Members[k]
		if l.Refused {
			refused |= 1 << m.Number
		}
		if l.Silent || l.Refused {
			o.Silent(now, k)
			continue
		}
		o.Moved(now, o.asked, k, o.saved(now, k))
		o.Exchange.Looked(k, l.Wait == 0, l.CaughtUp)
		if m.Role == nodeset.Enters {
			guard = max(guard, l.Wait)
		}
	}
	o.refuse(refused)
	o.propose(now, guard)
}

// saved reports whether a member has its move on disk. It may be asked to write
// a snapshot.
func (o *Operator) saved(now protocol.Time, k int) bool {
	if !o.Saves(k) {
		return false
	}
	saved, snapshot := o.disks[k].told(now, o.looks[k].Disk)
	if snapshot {
		o.Out = append(o.Out, OperatorStep{Kind: OperatorSnapshot, Member: o.config.Members[k], Stamp: o.config.Stamp, Again: o.disks[k].failed, place: k})
	}
	return saved
}

// Begun says whether a snapshot has begun.
func (o *Operator) Begun(now protocol.Time, s OperatorStep, p Persistence) {
	if s.Stamp == o.config.Stamp {
		o.disks[s.place].begun(now, p)
	}
}

// refuse notes a refusal that no other round changes: of a node that enters, or
// of so many others that these cannot decide. A node that is removed may refuse
// what it likes, as long as the others have a quorum.
func (o *Operator) refuse(refused uint32) {
	blocked := protocol.Quorums{Present: o.config.Deciders()}.Blocked(refused)
	for _, m := range o.config.Members {
		if refused&(1<<m.Number) != 0 && (blocked || m.Role == nodeset.Enters && !o.only) {
			o.refused = true
			o.giveUp(WhyRefused, m.Addr)
		}
	}
	if blocked {
		o.end = OperatorBlocked
	}
}

// giveUp notes why the change is given up. What was first stays.
func (o *Operator) giveUp(why OperatorWhy, member string) {
	if !o.given {
		o.given, o.Why, o.Member = true, why, member
	}
}

// propose goes on with the exchange if it is time.
func (o *Operator) propose(now protocol.Time, guard time.Duration) {
	if o.end != OperatorGoesOn {
		return
	}
	next, ask := o.Propose(now, o.Ballot())
	if k, silent := o.GaveUp(); k >= 0 && !o.given {
		o.giveUp(WhySilent, o.config.Members[k].Addr)
		o.Away = silent
	}
	switch o.Outcome() {
	case ExchangeDone:
		o.end = OperatorDone
	case ExchangeUndone:
		if o.end = OperatorUndone; o.only {
			o.end = OperatorDone
		}
	case ExchangeUnfit:
		o.end = OperatorUnfit
	default:
		o.Progress = o.progress(now, next, guard)
		if o.busy = ask; ask {
			o.Out = append(o.Out, OperatorStep{Kind: OperatorSucceed, Succession: NewSuccession(o.config, next, o.TTL, o.NodeTimeout), round: o.round})
		} else {
			o.abandon(now)
		}
	}
}

// Succeeded says that a Succession is over, and which members have refused for
// good, by their numbers. It returns what was decided, nil if nothing is known
// to be: the client counts on that from then on, as on what a node shows. If
// this process dies before the first member moves, no node shows the decision.
// The register keeps it, and the next operator finds it there.
func (o *Operator) Succeeded(now protocol.Time, s OperatorStep, refused uint32) *nodeset.Configuration {
	decided, known := s.Succession.Decided()
	if decided != nil {
		o.Begins(decided)
	}
	if s.round != o.round || !o.busy || o.end != OperatorGoesOn {
		return decided
	}
	o.busy = false
	o.refuse(refused)
	if known && decided == nil {
		o.Read()
	}
	o.abandon(now)
	return decided
}

// abandon has the change be undone that cannot be carried out.
func (o *Operator) abandon(now protocol.Time) {
	if o.end == OperatorGoesOn && o.refused && o.limit == 0 {
		o.giveBack(now, o.config)
	}
}

// Abandon says that the caller waits no longer. Answers to what is under way
// are not used any more. c is what the client counts on now.
func (o *Operator) Abandon(now protocol.Time, c *nodeset.Configuration) {
	if o.end != OperatorGoesOn || o.limit != 0 {
		return
	}
	o.given, o.Why = true, WhyStopped
	o.giveBack(now, c)
}

// giveBack undoes what this call has begun, if that is possible, within a
// bound. A change that another client has begun is left as it is: that client
// may be at work, and the next call of any operator goes on with it or undoes
// it.
//
// To undo takes a lock, a read and a put at the nodes. A bound of its own lets
// a call that is broken off leave the set as it was, where the nodes answer,
// and ends soon where they do not.
func (o *Operator) giveBack(now protocol.Time, c *nodeset.Configuration) {
	o.round++
	o.due, o.busy, o.again = 0, false, now
	if c != nil { // the step that was decided last may not have been looked at yet
		o.count(now, c)
	}
	if !o.Mine() || o.only {
		o.end = OperatorLeft
		return
	}
	within := undoes*o.Fanout.QuorumTimeout(0, o.NodeTimeout, o.TTL) + 2*o.NodeTimeout //mutant:ConstUndo
	o.Undo, o.limit = true, now.Add(within)
}

// undoes is how many questions to a majority undoing may take.
const undoes = 8
