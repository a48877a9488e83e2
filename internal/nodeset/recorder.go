package nodeset

import (
	"slices"

	"github.com/quorate/quorate/internal/protocol"
)

// This file owns when the nodes of a list record a set, and when a set that
// most of its members have forgotten is recorded again. Recording owns how.
// Invariant: all nodes record a set, or none does. So each of them is connected
// and judged when a recording begins: one that is away may know a set, or a
// later configuration, and the set would have two successors of one epoch.

// recorder is what a client records, and has recorded last.
type recorder struct {
	*contacts

	wanted bool           // see Want
	mine   *Recording     // this client's last one
	last   *Configuration // that the client counted on; nil: none
}

// Want says that the client is going to use its nodes. Blank nodes record the
// set of the client's list from then on. Until then an operator has the time to
// declare them new, see Bootstrap.
func (r *recorder) Want() { r.wanted = true }

// Due reports whether Record returns a Recording.
func (r *recorder) Due() bool { return r.due(r.wanted) != nil }

// Record returns the Recording that is due, nil if none is. shared are the
// client's settings, for a set that is new. With ready an operator has declared
// the nodes brand-new: no guard time begins.
func (r *recorder) Record(b Ballot, shared Shared, ready bool, identity func() string) *Recording {
	d := r.due(r.wanted || ready)
	// An operator's word is of new nodes. Those of a set that seems to be
	// forgotten may be about to get their commits.
	if d == nil || d.again != nil && ready {
		return nil
	}
	c, again := d.again, d.again != nil
	if !again {
		if f := r.last; f != nil { // leases that the forgotten set allowed may run yet
			shared = Shared{max(shared.Guard, f.Guard()), max(shared.Retention, f.Retention()), max(shared.Skew, f.Skew())}
		}
		c = &Configuration{Stamp: StampOf(1, b), Origin: StampOf(1, b), Now: shared, Next: shared, Last: len(r.list) - 1}
		for i, addr := range r.list {
			c.Members = append(c.Members, Member{Number: i, Identity: identity(), Addr: addr, Also: r.others(addr)})
		}
	}
	var runs []string
	for _, i := range d.at {
		runs = append(runs, r.at(i).has.Run)
	}
	r.mine = &Recording{again: again, ready: ready, ballot: b, Config: c, addrs: r.addrs(c), at: d.at, runs: runs}
	r.mine.ask(SetPromise)
	return r.mine
}

// others returns the further addresses that the last configuration has for the
// server at an address. Without them a client that reaches a server only by
// such a one has lost it once all servers have lost their data.
func (r *recorder) others(addr string) []string {
	if r.last == nil || r.last.Place(addr) < 0 {
		return nil
	}
	all := r.last.Members[r.last.Place(addr)].All()
	return slices.DeleteFunc(all, func(a string) bool { return a == addr || slices.Contains(r.list, a) })
}

// addrs returns the address by which this client reaches each member of c.
func (r *recorder) addrs(c *Configuration) (addrs []string) {
	for i := range c.Members {
		addrs = append(addrs, r.dials(&c.Members[i]))
	}
	return addrs
}

// committed returns what a server keeps that a connection has reached. If all
// nodes have accepted what this client records, and the commit to this one was
// lost with a connection, Out has it.
// Invariant: a node that has got its commit gets it no more: it may have voted
// since, and lost its data. The operator's word is for the run in which it has
// accepted only.
func (r *recorder) committed(i int, has NodeSet) NodeSet {
	m := r.mine
	if m == nil {
		return has
	}
	at := slices.Index(m.addrs, r.Addr(i))
	if m.phase != SetCommit {
		m.met(at, has.Run)
		return has
	}
	if m.keeps(has); m.kept[has.Identity] || has.Phase != SetAccepted || has.Accepted != m.ballot {
		return has
	}
	ready := m.ready && at >= 0 && has.Run == m.runs[at]
	r.do(i, SetAction{RecordStep: RecordStep{Kind: SetCommit, Ballot: m.ballot, Identity: has.Identity, Config: m.Config, Ready: ready}})
	return NodeSet{Phase: SetRecorded, Identity: has.Identity, Config: m.Config}
}

// dueRecording is what is to be recorded.
type dueRecording struct {
	again *Configuration // nil: a new set
	at    []int          // the connections to its nodes
}

func (r *recorder) due(wanted bool) *dueRecording {
	if r.config != nil {
		return r.dueAgain(r.config)
	}
	d := &dueRecording{}
	for i := range r.seeds {
		if n := &r.seeds[i]; !n.up || n.again {
			return nil
		}
		d.at = append(d.at, Seed+i)
	}
	sets := r.shown()
	switch {
	case len(sets) == 1 && r.covers(sets[0][0]):
		return r.dueAgain(sets[0][0])
	case len(sets) > 0 || !wanted:
		return nil
	}
	return d
}

// dueAgain returns the recording that is due where fewer than a majority of the
// members of c remember the set. It concerns all members of the latest
// configuration that is remembered.
// Invariant: while the set is being changed it is not recorded again. What was
// decided may be forgotten, and a second decision would give the set two
// successors.
func (r *recorder) dueAgain(c *Configuration) *dueRecording {
	top, knows, lost := c, uint32(0), false
	for _, member := range c.Members {
		_, n := r.contactAt(r.dials(&member))
		if n == nil || !n.up || n.again {
			return nil
		}
		switch shown := n.has.Recorded(); {
		case shown != nil && shown.Kin(c) && n.has.Identity == member.Identity:
			knows |= 1 << member.Number
			if shown.Stamp.Compare(top.Stamp) > 0 {
				top = shown
			}
		case shown != nil: // an operator has to look
			return nil
		default:
			lost = true
		}
	}
	if !lost || knows == 0 && r.config == nil || protocol.Most(c.Deciders(), knows) || top.Stage != Stable {
		return nil
	}
	d := &dueRecording{again: top}
	for _, member := range top.Members {
		at, n := r.contactAt(r.dials(&member))
		if n == nil || !n.up {
			return nil
		}
		d.at = append(d.at, at)
	}
	return d
}
