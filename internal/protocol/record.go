package protocol

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// A record is what the nodes keep of a name beside its claims: that something
// is done, who leads, how many permits there are. It is written under a claim,
// and what a majority has is what counts.
//
// It does not rest on leases. A run begins with open(T) on a majority: each of
// these nodes promises to take nothing below T from then on, and tells what it
// has. So of two runs the later one either finds what the earlier has recorded
// on a majority, or keeps it from ever being recorded there. (That is Paxos,
// with tickets for ballots; protocol.md, "The record".)
//
// What Paxos asks of its nodes and Redis does not keep is memory. A promise is
// therefore only taken from a claim for which the node votes at that very
// moment: a node that has forgotten a later run's promise votes for a claim
// again only after its guard time, and then only for one that is still held.
// And a node that has forgotten does not testify that there is nothing: it is
// not whole until it has been told what the others have recorded and promised.

// Remember is how long a node keeps a promise at least. A put that goes on after
// its claim has been lost must end well before: at LatePut.
const (
	Remember = time.Hour
	LatePut  = Remember / 2
)

// Version says under which claim something was recorded, and as which of that
// claim's writes. Versions are ordered: by ticket, then by id, then by number.
type Version struct {
	Ticket Ticket
	ID     ID
	Seq    uint64
}

// Run compares the claims of two versions.
func (v Version) Run(o Version) int {
	return cmp.Or(cmp.Compare(v.Ticket, o.Ticket), bytes.Compare(v.ID[:], o.ID[:]))
}

// Compare orders versions.
func (v Version) Compare(o Version) int { return cmp.Or(v.Run(o), cmp.Compare(v.Seq, o.Seq)) }

// Stored is what is recorded.
type Stored struct {
	Version
	Erased bool // it is recorded that there is nothing
	Value  []byte
	Keep   time.Duration // how long the node remembers; 0: for ever. Not told by nodes
}

// Entry is what a node tells of a record.
type Entry struct {
	Stored
	Whole   bool          // the node has lost nothing since it was last told everything
	Forged  bool          // it keeps a version of the far future, which it does not tell (Forged)
	Promise Version       // of the newest run that has begun here
	Left    time.Duration // of the lease of the claim that has recorded this; 0: it is not here, or not voted for
}

// Outcome is what has become of an Inquiry.
type Outcome uint8

// The outcomes.
const (
	Asking    Outcome = iota // not decided yet
	Settled                  // a majority has it so
	Unsettled                // a read that found what a later run will not let a majority have
	Outrun                   // an open or a put that a later run has overtaken
	Refused                  // so many nodes refuse for good that q cannot be reached
)

// Inquiry is one operation on a record: it asks all nodes, and those that do
// not answer again, until a majority decides. As with Claim, its methods take
// the time and an event, Out is what is to be sent then, and Wake is when it
// wants a Tick.
type Inquiry struct {
	Op          Op            // OpRead, OpOpen or OpPut
	Over        bool          // OpPut: its claim has been lost, so no node will vote for it any more
	Fresh       time.Duration // how long an answer counts: no node that forgets after it is whole again so soon
	Stored      Stored
	Nodes       int
	NodeTimeout time.Duration
	Patience    time.Duration // the longest pause before a node is asked again
	Alive       bool          // OpRead: Left is wanted, so a node that is only slow is waited for if it matters
	All         bool          // OpRead: every node that answers shall have it in the end
	Heal        int           // OpRead: the number of a node that must have it in the end, counted from 1; 0: none
	Rules       Rules
	Out         []Request

	outcome Outcome
	newest  Stored
	promise Version // the newest that any node has told of
	since   Time    // what others are asked from here on counts; 0: not yet. See write and read
	peers   []informant
}

// informant is what is known of one node.
type informant struct {
	entry    Entry
	told     bool // entry is its answer
	taken    bool // it has taken the open or put, or has what is being repaired
	overrun  bool // it has refused that for a later run
	missing  bool // it does not vote for the claim
	at       Time // s of its newest answer
	repair   bool // it is to be given the newest
	tried    bool // which it was since it was read last
	refused  bool // it refuses for good
	asked    Time // s of the request that is out; 0: none
	retry    Time // when to ask again; 0: not
	failures int
}

// Quorum returns q.
func (q *Inquiry) Quorum() int { return q.Nodes/2 + 1 }

// Outcome returns what has become of it.
func (q *Inquiry) Outcome() Outcome { return q.outcome }

// Newest returns the newest that any node has told of.
func (q *Inquiry) Newest() Stored { return q.newest }

// Start asks all nodes; first only the one that is to be healed.
func (q *Inquiry) Start(now Time) {
	q.peers = make([]informant, q.Nodes)
	for i := range q.peers {
		if q.Heal == 0 || i == q.Heal-1 || !q.Rules.on(RuleAfter) {
			q.ask(now, i)
		}
	}
}

// ask sends a node what it has not done yet.
func (q *Inquiry) ask(now Time, i int) {
	p := &q.peers[i]
	r := Request{Node: i, Op: q.Op, Sent: now}
	switch {
	case p.repair:
		newest := q.newest // which may be another one by the time it is encoded
		promise := q.promise
		r.Op, r.Stored, r.Promise = OpRepair, &newest, &promise
	case q.Op != OpRead:
		r.Stored = &q.Stored
	}
	p.asked, p.retry, p.repair = now, 0, false
	q.Out = append(q.Out, r)
}

// Answer takes a node's answer to r.
func (q *Inquiry) Answer(now Time, r Request, a Answer) {
	p := &q.peers[r.Node]
	if p.asked == r.Sent {
		p.asked = 0
	}
	if q.outcome != Asking {
		return
	}
	p.refused, p.missing = false, a.Status == Missing
	// The newest answer decides: a node that took this once, and does not now, has
	// lost its memory since, or a later run has begun there.
	p.taken = a.Status == OK && r.Op == q.Op && q.Op != OpRead
	if a.Record != nil {
		p.told, p.entry, p.at = true, *a.Record, r.Sent
		if p.entry.Version.Compare(q.newest.Version) > 0 {
			q.newest = p.entry.Stored
		}
		if p.entry.Promise.Run(q.promise) > 0 {
			q.promise = p.entry.Promise
		}
	}
	switch a.Status {
	case OK:
		if q.Op == OpPut || p.entry.Whole {
			p.failures = 0
			break
		}
		// Somebody is telling it what it has forgotten: then it is a witness.
		p.tried = r.Op == OpRepair
		q.later(now, p, 0)
	case Overtaken:
		if p.overrun = q.Op != OpRead; !p.overrun {
			q.later(now, p, 0) // it has promised more since it was asked
		}
	case Recovering: // it knows nothing, and says so
		*p = informant{}
		q.later(now, p, a.Wait)
	default:
		q.later(now, p, 0)
	}
	q.advance(now)
}

// Fail takes a request that will not be answered, for good or for now.
func (q *Inquiry) Fail(now Time, r Request, forGood bool) {
	p := &q.peers[r.Node]
	if q.outcome != Asking || p.asked != r.Sent {
		return
	}
	p.asked, p.refused = 0, forGood
	q.later(now, p, 0)
	q.advance(now)
}

// Up says that a node's connection has come back.
func (q *Inquiry) Up(now Time, node int) {
	if p := &q.peers[node]; q.outcome == Asking && p.asked == 0 && p.retry != 0 {
		p.retry, p.refused = now, false
		q.advance(now)
	}
}

// Early says that answers are older than this process's clock tells: it stood still.
func (q *Inquiry) Early(now Time, by time.Duration) {
	for i := range q.peers {
		q.peers[i].at = q.peers[i].at.Add(-by)
	}
	q.Tick(now)
}

// Tick lets time pass.
func (q *Inquiry) Tick(now Time) {
	if q.outcome == Asking {
		q.advance(now)
	}
}

// Wake returns when a Tick is wanted.
func (q *Inquiry) Wake() Time {
	w := Never
	if q.outcome != Asking {
		return w
	}
	for i := range q.peers {
		p := &q.peers[i]
		switch {
		case p.asked != 0:
			w = min(w, p.asked.Add(q.NodeTimeout))
		case p.retry != 0:
			w = min(w, p.retry)
		}
		if p.told && q.Rules.on(RuleFresh) {
			w = min(w, p.at.Add(q.Fresh))
		}
	}
	return w
}

func (q *Inquiry) later(now Time, p *informant, wait time.Duration) {
	p.failures++
	pause := max(wait, q.NodeTimeout<<min(p.failures, 8)/8)
	p.retry = now.Add(max(min(pause, q.Patience), time.Millisecond))
}

func (q *Inquiry) advance(now Time) {
	refusals := 0
	for i := range q.peers {
		p := &q.peers[i]
		if p.asked != 0 && now >= p.asked.Add(q.NodeTimeout) {
			p.asked = 0
			q.later(now, p, 0)
		}
		if p.told && now >= p.at.Add(q.Fresh) && q.Rules.on(RuleFresh) {
			p.told, p.taken = false, false // it may have forgotten since, and have been told by others what it knew then
			if p.asked == 0 {
				p.retry = now
			}
		}
		if p.refused {
			refusals++
		}
	}
	if q.Op == OpRead {
		q.read(now)
	} else {
		q.write(now)
	}
	if q.outcome == Asking && q.Nodes-refusals < q.Quorum() {
		q.outcome = Refused
	}
	if q.outcome != Asking {
		return
	}
	for i := range q.peers {
		if p := &q.peers[i]; p.asked == 0 && p.retry != 0 && now >= p.retry {
			q.ask(now, i)
		}
	}
}

// authority reports whether those who have told what they know can testify that
// there is nothing newer: q nodes that are whole, since something recorded on a
// majority is with one of them, or all nodes, since nobody else is left to ask.
// A node that lost its memory and has not been told again what the others know
// is no witness.
func (q *Inquiry) authority(counts func(*informant) bool) bool {
	whole, all := 0, 0
	for i := range q.peers {
		p := &q.peers[i]
		if !p.told || !counts(p) || p.entry.Forged && q.Rules.on(RuleForged) {
			continue
		}
		all++
		if (p.entry.Whole || !q.Rules.on(RuleWhole)) && i+1 != q.Heal {
			whole++
		}
	}
	return whole >= q.Quorum() || all == q.Nodes
}

// Told reports whether those of the other nodes who have told which names they have
// recorded suffice for a node that has lost its memory: whole of them are whole, of all
// that have told. It is authority for names, before it can be asked for a name.
func (r Rules) Told(nodes, whole, all int) bool {
	if !r.on(RuleTold) {
		all++ // as if the node itself were one of them
	}
	return whole > nodes/2 || all >= nodes-1
}

// write decides an open or a put: it is done when a majority has taken it. An
// open also tells what was recorded before, and for that it needs those who know.
//
// Who knows need not have promised. Whoever has promised takes nothing of an
// earlier run any more. So what such a run can still bring to a majority has
// been taken by one of them before, and the open finds it there; unless that
// one has forgotten it since. But it has not promised before its guard time was
// over, and that is longer than an answer counts: a put that rests on what was
// forgotten had its majority by then, and any q whole nodes that are asked
// afterwards know of it.
//
// Were it otherwise, a run that has too few whole nodes among those that vote for
// it would wait for one to be healed, and that for the run to decide what a
// minority has.
func (q *Inquiry) write(now Time) {
	taken, overrun := 0, 0
	for i := range q.peers {
		p := &q.peers[i]
		if p.taken {
			taken++
		}
		if p.overrun || p.missing && q.Over {
			overrun++
		}
	}
	switch {
	case overrun > q.Nodes-q.Quorum():
		q.outcome = Outrun
	case taken < q.Quorum():
		q.since = 0
	case q.Op == OpPut:
		q.outcome = Settled
	default:
		q.from(now, func(p *informant) bool { return p.taken })
		if q.authority(func(p *informant) bool { return p.taken || q.after(p) && q.Rules.on(RuleOthers) }) {
			q.outcome = Settled
		}
	}
}

// from has all be asked anew that have told before a certain moment: which is
// now, unless it has been before. Those excepted have told enough.
func (q *Inquiry) from(now Time, except func(*informant) bool) {
	first := q.since == 0
	if first {
		q.since = now
	}
	for i := range q.peers {
		if p := &q.peers[i]; p.asked == 0 && (first || p.retry == 0) && !q.after(p) && !except(p) {
			p.retry = now
		}
	}
}

// after: it has told what it knew after that moment.
func (q *Inquiry) after(p *informant) bool {
	return p.told && (p.at >= q.since || !q.Rules.on(RuleAfter))
}

// read decides what is recorded. What only a minority is known to have is
// brought to a majority before anybody is told of it: or the next one to read
// might not find it. That must not be done once a later run may have begun, for
// it may have found nothing: then that run decides, or the next.
//
// A node is healed by what others tell after its guard time is over. What they
// told before may be too old: a put that rests on what the node has forgotten
// counts, and can be completed, for about as long.
func (q *Inquiry) read(now Time) {
	if q.Heal != 0 {
		healed := &q.peers[q.Heal-1]
		if !healed.told {
			q.since = 0
			return
		}
		q.from(now, func(p *informant) bool { return p == healed })
		if !q.authority(func(p *informant) bool { return p == healed || q.after(p) }) {
			return
		}
	} else if !q.authority(func(*informant) bool { return true }) {
		return
	}
	if q.All && !q.answered() {
		return
	}
	have, silent := 0, 0
	for i := range q.peers {
		switch p := &q.peers[i]; {
		case !p.told:
			if p.failures == 0 {
				silent++
			}
		case p.entry.Version.Compare(q.newest.Version) >= 0:
			have++
		}
	}
	chosen := have >= q.Quorum() || q.newest.Version == Version{}
	may := chosen || q.promise.Run(q.newest.Version) <= 0 || !q.Rules.on(RuleLater)
	switch {
	case !q.Rules.on(RuleRepair):
		q.outcome = Settled
		return
	case !may && have+silent < q.Quorum():
		q.outcome = Unsettled
		return
	case !may:
		return
	case chosen && (q.Heal == 0 || !q.lacks(q.Heal-1)) && !(q.All && q.lacking()):
		if !q.Alive || q.certain() {
			q.outcome = Settled
		}
		return
	}
	for i := range q.peers {
		p := &q.peers[i]
		wanted := q.Heal == 0 || i == q.Heal-1 || !chosen || q.All
		free := p.asked == 0 && (p.retry == 0 || !p.entry.Whole && !p.tried) // that one is only due to be read again
		if p.told && q.lacks(i) && wanted && free && !p.repair {
			p.retry, p.repair, p.tried = now, true, true
		}
	}
}

// answered: every node has told what it has, or failed to.
func (q *Inquiry) answered() bool {
	for i := range q.peers {
		if p := &q.peers[i]; !p.told && p.failures == 0 {
			return false
		}
	}
	return true
}

// lacking: a node that has told what it has lacks the newest, and has not failed since.
func (q *Inquiry) lacking() bool {
	for i := range q.peers {
		if p := &q.peers[i]; p.told && q.lacks(i) && p.failures == 0 {
			return true
		}
	}
	return false
}

// lacks: a node has not got the newest yet; one that is to be healed lacks the
// newest promise, too.
func (q *Inquiry) lacks(i int) bool {
	e := &q.peers[i].entry
	return e.Version.Compare(q.newest.Version) < 0 || i == q.Heal-1 && e.Promise.Run(q.promise) < 0
}

// certain: whether the claim that has recorded the newest still runs is known,
// or nobody is left to ask who has not failed to answer.
func (q *Inquiry) certain() bool {
	if _, certain := q.Left(); certain {
		return true
	}
	return q.answered()
}

// Left returns how much is left of the lease of the claim that has recorded the
// newest, as a majority sees it, and whether that is certain: while some nodes
// have not told, a claim that too few are known to hold may be held all the same.
func (q *Inquiry) Left() (left time.Duration, certain bool) {
	var lefts []time.Duration
	dead := 0
	for i := range q.peers {
		p := &q.peers[i]
		switch {
		case !p.told:
		case p.entry.Version.Run(q.newest.Version) == 0 && p.entry.Left > 0:
			lefts = append(lefts, p.entry.Left)
		default:
			dead++
		}
	}
	switch {
	case len(lefts) >= q.Quorum():
		return nthLongest(lefts, q.Quorum()), true
	case dead > q.Nodes-q.Quorum():
		return 0, true
	case len(lefts) == 0:
		return 0, false
	}
	return slices.Min(lefts), false
}

// nthLongest returns the n-th longest of some durations, n counted from 1.
func nthLongest(ds []time.Duration, n int) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)-n]
}

// Anew returns what an open has found and fewer than a majority are known to
// have: it is to be put under the new run's version before anybody is told.
func (q *Inquiry) Anew() (Stored, bool) {
	have := 0
	for i := range q.peers {
		if p := &q.peers[i]; p.told && p.entry.Version == q.newest.Version {
			have++
		}
	}
	s := q.newest
	s.Version = Version{Ticket: q.Stored.Ticket, ID: q.Stored.ID}
	return s, q.newest.Version != Version{} && have < q.Quorum() && q.Rules.on(RuleAdopt)
}
