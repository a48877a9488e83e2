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

// Operator is one call that changes a set. Run carries it out. It is not safe
// for concurrent use.
type Operator struct {
	Exchange
	TTL, NodeTimeout time.Duration
	Fanout           *lease.Fanout

	Why     OperatorWhy
	Member  string        // of Why
	Refusal error         // of WhyRefused
	Away    time.Duration // of WhySilent

	disks   []disk // of the members of the configuration that Exchange knows
	undoes  bool   // the change is being undone within a bound, or left as it is: see giveBack
	refused bool   // by a node, for good, so that no other round can help
	given   bool   // Why is set
	only    bool   // nothing is wanted but to undo what is under way
	end     OperatorEnd
}

// Config returns the configuration that the call counts on, nil if none.
func (o *Operator) Config() *nodeset.Configuration { return o.config }

// Run carries out the call, and returns how it has ended.
func (o *Operator) Run(io IO) OperatorEnd {
	if o.rounds(io); o.end == OperatorGoesOn {
		o.giveBack(io)
	}
	return o.end
}

// rounds makes one round after the other until the call ends, is stopped, or
// cannot be carried out.
func (o *Operator) rounds(io IO) {
	for !io.Stopped() {
		next := io.Now().Add(o.pause())
		if c := io.Config(); c != nil {
			o.round(io, c)
		}
		if o.end != OperatorGoesOn || o.refused && !o.undoes {
			return
		}
		io.Sleep(next)
	}
}

// pause is the time between the beginnings of two rounds. A round asks each
// member once, so it is a few commands per second for the length of the change.
// Undoing has a bound, so it goes on more often.
func (o *Operator) pause() time.Duration {
	d := o.NodeTimeout / 2
	if o.undoes {
		d /= 2
	}
	return max(d, time.Millisecond) //mutant:ConstRound
}

// round looks at all members, and goes on with the exchange if it is time.
//
// Invariant: c is read once in a round, at its beginning. What the nodes say is
// about that one, and what is proposed follows it. If another client's step
// begins to count meanwhile, what is proposed comes to nothing: see
// RuleSetSuccessor.
func (o *Operator) round(io IO, c *nodeset.Configuration) {
	o.count(c)
	asked, looks := io.Now(), make([]MemberLook, len(c.Members))
	io.Each(len(looks), func(io IO, k int) {
		looks[k] = io.Look(c.Members[k], c.Stamp, o.Saves(k) && !o.disks[k].settled)
	})
	if io.Stopped() {
		return
	}
	guard := o.take(io, asked, looks)
	if o.end == OperatorGoesOn && !io.Stopped() {
		o.propose(io, guard)
	}
}

// count has the call count on the configuration that the client counts on. The
// pointer tells one configuration from another: each step makes a new one.
func (o *Operator) count(c *nodeset.Configuration) {
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

// take takes what the looks of a round have shown, and has members write
// snapshots that need one. It returns the longest guard time of a node that
// enters.
func (o *Operator) take(io IO, asked protocol.Time, looks []MemberLook) (guard time.Duration) {
	now, refusals := io.Now(), make([]error, len(looks))
	var save []int
	for k, l := range looks {
		if refusals[k] = l.Refused; l.Silent || l.Refused != nil {
			o.Silent(now, k)
			continue
		}
		saved, snapshot := false, false
		if o.Saves(k) {
			saved, snapshot = o.disks[k].told(now, l.Disk)
		}
		if snapshot {
			save = append(save, k)
		}
		o.Moved(now, asked, k, saved)
		o.Looked(k, l.Wait == 0, l.CaughtUp)
		if o.config.Members[k].Role == nodeset.Enters {
			guard = max(guard, l.Wait)
		}
	}
	disks := o.disks // those of this round, however late a member answers
	io.Each(len(save), func(io IO, i int) {
		k := save[i]
		p := io.Snapshot(o.config.Members[k], disks[k].failed)
		disks[k].begun(io.Now(), p)
	})
	o.refuse(refusals)
	return guard
}

// refuse notes refusals that no other round changes: of a node that enters, or
// of so many others that these cannot decide. A node that is removed may refuse
// what it likes, as long as the others have a quorum. refusals are by member,
// nil for one that does not refuse for good.
func (o *Operator) refuse(refusals []error) {
	refused := uint32(0)
	for k, err := range refusals {
		if err != nil {
			refused |= 1 << o.config.Members[k].Number
		}
	}
	blocked := protocol.Quorums{Present: o.config.Deciders()}.Blocked(refused)
	for k, err := range refusals {
		if m := &o.config.Members[k]; err != nil && (blocked || m.Role == nodeset.Enters && !o.only) {
			if o.refused = true; !o.given {
				o.giveUp(WhyRefused, m.Addr)
				o.Refusal = err
			}
		}
	}
	if blocked {
		o.end = OperatorBlocked
	}
}

// giveUp notes why the change is given up. What was first stays, unless the
// caller waits no longer.
func (o *Operator) giveUp(why OperatorWhy, member string) {
	o.given, o.Why, o.Member = true, why, member
}

// propose goes on with the exchange if it is time.
func (o *Operator) propose(io IO, guard time.Duration) {
	now := io.Now()
	next, ask := o.Propose(now, io.Ballot())
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
		if io.Report(o.progress(now, next, guard)); ask {
			o.succeed(io, next)
		}
	}
}

// succeed has the nodes decide what follows, next if that is not nil. If this
// process dies before the first member moves, no node shows the decision. The
// register keeps it, and the next operator finds it there.
func (o *Operator) succeed(io IO, next *nodeset.Configuration) {
	s := NewSuccession(o.config, next, o.TTL, o.NodeTimeout)
	refusals := io.Succeed(s)
	decided, known := s.Decided()
	if decided != nil {
		o.NoteBegun(decided)
	}
	if io.Stopped() {
		return
	}
	if o.refuse(refusals); known && decided == nil {
		o.Read()
	}
}

// giveBack undoes what this call has begun, if that is possible, within a
// bound: the caller waits no longer, or the change cannot be carried out. A
// change that another client has begun is left as it is: that client may be at
// work, and the next call of any operator goes on with it or undoes it.
//
// To undo takes a lock, a read and a put at the nodes. A bound of its own lets
// a call that is broken off leave the set as it was, where the nodes answer,
// and ends soon where they do not.
func (o *Operator) giveBack(io IO) {
	if io.Stopped() {
		o.giveUp(WhyStopped, "")
	}
	if c := io.Config(); c != nil { // the step that was decided last may not have been looked at yet
		o.count(c)
	}
	if o.Mine() && !o.only {
		deciders := protocol.Quorums{Present: o.config.Deciders()}
		within := undoes*o.Fanout.QuorumTimeout(deciders, 0, o.NodeTimeout, o.TTL) + 2*o.NodeTimeout //mutant:ConstUndo
		o.Undo, o.undoes = true, true
		io.Within(within, o.rounds)
	}
	if o.end == OperatorGoesOn {
		o.end = OperatorLeft
	}
}

// undoes is how many questions to a majority undoing may take.
const undoes = 8
