package nodeset

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// When the nodes of a list record a set, and when a set is recorded again that
// most of its members have forgotten. Recording says how.
// Invariant: either all nodes record a set or none does. So each of them must
// be connected and judged when a recording begins. A node that is away may know
// a set or a later configuration, and one epoch would then have two successors.

// Recorder decides what a client records, and keeps what it recorded last. It
// is a part of a Membership.
type Recorder struct {
	contacts *contacts

	wanted   bool           // see Want
	mine     *Recording     // this client's latest recording
	promised Ballot         // the highest ballot that a node has reported to its recordings
	last     *Configuration // the last one that the client counted on; nil if none
}

// Want says that the client is about to use its nodes. From then on, blank
// nodes record the set of the client's list. Until then, an operator can still
// declare them new, see Bootstrap.
func (r *Recorder) Want() { r.wanted = true }

// Due reports whether Record has something to do.
func (r *Recorder) Due() bool { return r.due(r.wanted) != nil }

// Record begins the recording that is due. It returns the recording and its first
// question to the nodes, or nil if none is due. ballot returns one that has the
// current time and is above the given one. shared are the client's settings, for a new set. ready means
// that an operator declared the nodes brand-new, so that no guard time begins.
func (r *Recorder) Record(
	ballot func(above Ballot) Ballot, shared Shared, ready bool, identity func() string,
) (*Recording, []RecordStep) {
	d := r.due(r.wanted || ready)
	// The operator's declaration is about new nodes. If a set seems to be
	// forgotten, its nodes may be about to receive their commits.
	if d == nil || d.again != nil && ready {
		return nil, nil
	}
	b, c := ballot(r.promised), d.again
	if c == nil {
		if f := r.last; f != nil { // leases of the forgotten set may still be running
			shared = Shared{max(shared.Guard, f.Guard()), max(shared.Retention, f.Retention()),
				max(shared.Skew, f.Skew())}
		}
		c = &Configuration{Stamp: StampOf(1, b), Origin: StampOf(1, b), Now: shared, Next: shared,
			Last: len(r.contacts.list) - 1}
		for i, addr := range r.contacts.list {
			c.Members = append(c.Members, Member{Number: i, Identity: identity(), Addr: addr,
				Also: r.aliases(addr)})
		}
	}
	var runs []string
	for _, i := range d.at {
		runs = append(runs, r.contacts.at(i).has.Run)
	}
	r.mine = &Recording{Forgotten: d.again != nil, ready: ready, ballot: b, Config: c, addrs: r.addrs(c),
		at: d.at, runs: runs}
	return r.mine, r.mine.ask(SetPromise)
}

// Next takes the answers to the latest question of this client's recording: what
// each node keeps after its step, in the order of the steps, and nil for a node
// that has not answered in time. It returns the next question, or nothing once
// the recording is over.
func (m *Membership) Next(answers []*NodeSet) []RecordStep {
	r := m.Recorder.mine
	steps := r.next(answers)
	m.Recorder.promised = max(m.Recorder.promised, r.promised)
	if len(steps) > 0 {
		return steps
	}
	if r.Outcome == RecordDone && m.config == nil {
		m.adopt(-1, r.Config)
	}
	// They may have a vote now, whatever has become of the recording. JudgeAgain
	// has left those that it used to its end, whatever their fault is.
	m.Rejudge()
	return nil
}

// Recording reports whether a recording of this client is under way.
func (r *Recorder) Recording() bool { return r.mine != nil && r.mine.Outcome == RecordGoesOn }

// Twice returns the connections to two addresses of the list that lead to one
// server, as far as the runs of servers tell, or -1.
func (r *Recorder) Twice() (one, other int) {
	runs := make([]string, len(r.contacts.seeds))
	for i := range r.contacts.seeds {
		if r.contacts.seeds[i].up {
			runs[i] = r.contacts.seeds[i].has.Run
		}
	}
	if one, other = sameRun(runs); one >= 0 {
		return Seed + one, Seed + other
	}
	return -1, -1
}

// aliases returns the other addresses that the last configuration lists for the
// server at addr, without those of the list: each of these gets a member of its
// own. They matter if all servers lose their data: a client that
// reaches a server only by another address would otherwise lose that server.
func (r *Recorder) aliases(addr string) []string {
	if r.last == nil || r.last.Place(addr) < 0 {
		return nil
	}
	all := r.last.Members[r.last.Place(addr)].All()
	list := r.contacts.list
	return slices.DeleteFunc(all, func(a string) bool { return a == addr || slices.Contains(list, a) })
}

// addrs returns the address by which this client reaches each member of c.
func (r *Recorder) addrs(c *Configuration) (addrs []string) {
	for i := range c.Members {
		addrs = append(addrs, c.Members[i].dialedBy(r.contacts.list))
	}
	return addrs
}

// resendCommit returns what the server behind a new connection has recorded. If
// all nodes have accepted this client's recording and the commit to this one
// was lost with a connection, it sends the commit again (see Out).
// Invariant: a node gets its commit only once. It may have voted since, and
// then lost its data. The operator's declaration applies only to the run of the
// server that accepted the set.
func (r *Recorder) resendCommit(i int, has NodeSet) NodeSet {
	m := r.mine
	if m == nil {
		return has
	}
	at := slices.Index(m.addrs, r.contacts.Addr(i))
	if m.phase != SetCommit {
		m.met(at, has.Run)
		return has
	}
	if m.keeps(has); m.kept[has.Identity] || has.Phase != SetAccepted || has.Accepted != m.ballot {
		return has
	}
	ready := m.ready && at >= 0 && has.Run == m.runs[at]
	r.contacts.do(i, SetAction{RecordStep: RecordStep{Kind: SetCommit, Ballot: m.ballot, Identity: has.Identity,
		Config: m.Config, Ready: ready}})
	return NodeSet{Phase: SetRecorded, Identity: has.Identity, Config: m.Config}
}

// dueRecording is what has to be recorded.
type dueRecording struct {
	again *Configuration // the set to record again; nil: record a new set
	at    []int          // the connections to its nodes
}

// due returns the recording that is due, nil if none is. Two at a time of one
// client would supersede each other.
func (r *Recorder) due(wanted bool) *dueRecording {
	if r.Recording() {
		return nil
	}
	if r.contacts.config != nil {
		return r.dueAgain(r.contacts.config)
	}
	d := &dueRecording{}
	for i := range r.contacts.seeds {
		if n := &r.contacts.seeds[i]; !n.ready || n.again {
			return nil
		}
		d.at = append(d.at, Seed+i)
	}
	sets := r.contacts.shown()
	switch {
	case len(sets) == 1 && sets[0][0].coveredBy(r.contacts.list):
		return r.dueAgain(sets[0][0])
	case len(sets) > 0 || !wanted:
		return nil
	}
	return d
}

// dueAgain returns the recording that is due if fewer than a majority of the
// members of c remember the set. It covers all members of the latest
// configuration that any of them remembers.
// Invariant: a set is not recorded again while it is being changed. The
// decision may be forgotten, and a second decision would give the set two
// successors.
func (r *Recorder) dueAgain(c *Configuration) *dueRecording {
	top, knows, lost := c, uint32(0), false
	for _, member := range c.Members {
		_, n := r.contacts.contactAt(member.dialedBy(r.contacts.list))
		if n == nil || !n.ready || n.again {
			return nil
		}
		switch shown := n.has.Recorded(); {
		case shown != nil && shown.Kin(c) && n.has.Identity == member.Identity:
			knows |= 1 << member.Number
			if shown.Stamp.Compare(top.Stamp) > 0 {
				top = shown
			}
		case shown != nil: // only an operator can resolve this
			return nil
		default:
			lost = true
		}
	}
	if !lost || knows == 0 || protocol.Most(c.Deciders(), knows) ||
		top.Stage != Stable {
		return nil
	}
	d := &dueRecording{again: top}
	for _, member := range top.Members {
		at, n := r.contacts.contactAt(member.dialedBy(r.contacts.list))
		if n == nil || !n.ready {
			return nil
		}
		d.at = append(d.at, at)
	}
	return d
}
