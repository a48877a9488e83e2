package quorate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/report"
)

// A Report is what [Quorum.Check] found.
type Report struct {
	Nodes  []NodeReport // in the order passed to New or Connect
	Quorum int          // number of nodes needed: N/2 + 1

	// Ready is the number of nodes that answer, vote, and accept new locks. While
	// nodes are being exchanged there are two sets, and both need a majority: then
	// Ready is Quorum plus the number of nodes that the worse set has to spare.
	Ready int

	// MayRestart reports whether it is safe to restart one more node, or even to
	// lose it along with its data: all nodes vote and have caught up, and Bare is
	// empty. In that case a majority keeps voting, no record is lost, and the
	// holds of this Quorum continue. A hold of another process may still depend on
	// a bare majority and end with [ErrLost], but that is rare. With one or two
	// nodes, every restart ends holds.
	MayRestart bool

	Bare []BareHold // holds of this Quorum that would end if one node were restarted; nil if there are none

	Set SetReport // the set that the nodes have recorded
}

// A BareHold is a hold that depends on a bare majority of the nodes even though
// another node is answering. That node has given the holder's place to a
// waiter, or another library's key blocks the name there. If one of Nodes is
// restarted or cut off for longer than the TTL, the hold ends with [ErrLost].
// Otherwise it is as safe as any other hold.
type BareHold struct {
	Name  string
	Token uint64   // the token that [Lease] returned for the first turn
	Nodes []string // addresses of the nodes that it depends on
}

// A SetReport describes the set that the nodes have recorded; see
// [Quorum.Bootstrap].
type SetReport struct {
	Recorded   bool          // whether a set is recorded; if so, clients with a different list are refused
	Stamp      string        // identifies the record; empty if no node has one
	Epoch      uint64        // number of times the set has been recorded, starting at 1
	Since      time.Time     // when it was recorded, by the clock of the client that recorded it
	Members    []string      // addresses of the members
	Guard      time.Duration // the settings that all clients share
	Retention  time.Duration
	Skew       time.Duration
	LongestTTL time.Duration // the longest TTL that the guard time allows
	Stage      Stage         // if not StageStable, the set is being changed; see package members
	Entering   []string      // addresses of the Members being added
	Leaving    []string      // addresses of the Members being removed
	Note       string        // what to do if no set is known or the set is being changed

	// Additional addresses of members, keyed by their address in Members; nil
	// if there are none.
	Also map[string][]string
}

// Stage is the progress of a change to the set.
type Stage string

// The stages.
const (
	// StageStable ("stable"): one set decides.
	StageStable Stage = "stable"
	// StageLearning ("learning"): the old nodes decide while the next set is
	// being prepared.
	StageLearning Stage = "learning"
	// StageJoint ("joint"): the old and the new nodes both decide, and a lock
	// needs a majority of each.
	StageJoint Stage = "joint"
)

// Membership is a node's relation to the set.
type Membership string

// The possible memberships. Only a member has a vote.
const (
	// NodeUnknown (""): the node has not answered yet, or no set is known.
	NodeUnknown Membership = ""
	// NodeMember ("member"): the node is the member with the report's Number.
	NodeMember Membership = "member"
	// NodeBlank ("blank"): the node has recorded no set, or has lost its data.
	NodeBlank Membership = "blank"
	// NodeAccepted ("accepted"): the node has not finished recording the set.
	NodeAccepted Membership = "accepted"
	// NodeAhead ("ahead"): only this node has a later configuration of the set.
	NodeAhead Membership = "ahead"
	// NodeRemoved ("removed"): the node has left the set.
	NodeRemoved Membership = "removed"
	// NodeOtherMember ("another member's data"): the node answers at the
	// address of another member.
	NodeOtherMember Membership = "another member's data"
	// NodeOtherSet ("another set's data"): the node belongs to another set.
	NodeOtherSet Membership = "another set's data"
)

// A NodeReport is what [Quorum.Check] found about one node.
type NodeReport struct {
	Node    string // the node's address
	Err     error  // why the node could not be asked; the other fields are then zero
	Version string // empty if the node refuses INFO; Role, AOF and Eviction are then unknown
	// "master"; anything else is a problem. Role, Fsync and Eviction are in
	// Redis's own words.
	Role       string
	AOF        bool          // whether the node keeps an append-only file
	Fsync      string        // with AOF: always, everysec or no; empty if the node refuses CONFIG
	Eviction   string        // maxmemory-policy; must be noeviction
	Offset     time.Duration // its clock minus the median of the nodes' clocks
	RoundTrip  time.Duration
	Recovering time.Duration // time until it votes again
	// Why it refuses new locks (memory full, disk full, …), in the server's own
	// words; nil if it accepts them.
	Refuses error
	// Whether it has everything that was recorded. A node that lost its data is
	// repaired after its guard time.
	CaughtUp   bool
	Repair     Repair        // the progress of its repair
	Jumped     time.Duration // the last jump of its clock that this Quorum has seen; 0 if none
	JumpedAt   time.Time     // when that jump was seen
	Number     int           // its member number; -1 if it is not a member
	Membership Membership    // its relation to the set
	Warnings   []string      // problems, each with its remedy
	// For a Redis Cluster: the servers that have buckets of names. The other
	// fields then show the worst of them.
	Shards  []NodeReport
	Buckets []int // for a shard: its buckets
}

// Repair reports the progress of repairing a node that has not caught up.
type Repair struct {
	Running bool   // whether a client, this one or another, is repairing the node now
	Host    string // that client's host
	PID     int
	Left    int // records still to be copied to the node; -1 while they are still being listed
}

var errReplica = errors.New("is a replica, not a master")

// replica reports whether the node is known not to be a master. A node that refuses
// INFO has no Role and does not count as a replica.
func (n *NodeReport) replica() bool { return n.Role != "" && n.Role != "master" }

// Check asks every node about everything that affects safety and reports what
// is wrong. Each voting node also performs the same kind of write as for a
// lock, on a separate key that starts with the prefix and expires within a
// second, because a node can answer every query and still refuse every write.
// Connecting starts the guard time of a brand-new node and, if a node has lost
// its data, repairs it from the others. Check waits until that has been
// attempted.
//
// It waits for each node until ctx is done, or for at most ten node timeouts,
// longer if the node is far away.
// If fewer than a majority of the nodes answer and vote, it returns
// [ErrNoQuorum] along with the full report. After [Quorum.Close] it returns
// [ErrClosed].
func (q *Quorum) Check(ctx context.Context) (Report, error) {
	s, err := q.mustCore().Onlooker().Survey(ctx)
	if err != nil {
		return Report{}, wrapError("check", "", err)
	}
	r := Report{Quorum: len(s.Nodes)/2 + 1}
	if s.Set != nil {
		r.Quorum = s.Set.Quorums().Need()
	}
	r.Nodes = make([]NodeReport, len(s.Nodes))
	for i := range s.Nodes {
		r.Nodes[i] = nodeReport(&s.Nodes[i])
	}
	r.Ready, r.MayRestart = s.Ready, s.MayRestart
	for _, b := range s.Bare {
		r.Bare = append(r.Bare, BareHold(b))
	}
	r.reportSet(&s)
	if r.Ready >= r.Quorum {
		return r, nil
	}
	e := &Error{Op: "check", Err: ErrNoQuorum, Votes: r.Ready, Needed: r.Quorum}
	for _, n := range r.Nodes {
		switch {
		case n.Err != nil:
			e.Nodes = append(e.Nodes, NodeError{Node: n.Node, Err: n.Err})
		case n.Recovering > 0:
			e.Nodes = append(e.Nodes, NodeError{Node: n.Node, Err: &fault.RecoveringError{Wait: n.Recovering}})
		case n.Refuses != nil:
			e.Nodes = append(e.Nodes, NodeError{Node: n.Node, Err: n.Refuses})
		case n.replica():
			e.Nodes = append(e.Nodes, NodeError{Node: n.Node, Err: errReplica})
		}
	}
	return r, e
}

// nodeReport converts what the core has found about a node, or about one server of
// a cluster.
func nodeReport(n *report.Node) NodeReport {
	r := NodeReport{
		Node: n.Addr, Err: n.Err, Version: n.Version, Role: n.Role, AOF: n.AOF, Fsync: n.Fsync,
		Eviction: n.Eviction, Offset: n.Offset, RoundTrip: n.RoundTrip,
		Recovering: n.Recovering, Refuses: n.Refuses, CaughtUp: n.CaughtUp, Jumped: n.Jumped, JumpedAt: n.JumpedAt,
		Warnings: n.Warnings, Buckets: n.Buckets,
		Membership: Membership(n.Membership), Number: n.Index,
	}
	if n.Index >= nodeset.Seed {
		r.Number = -1
	}
	if p := n.Repairing; p != nil {
		r.Repair = Repair{Running: true, Host: p.Host, PID: p.PID, Left: p.Left}
	}
	for i := range n.Shards {
		r.Shards = append(r.Shards, nodeReport(&n.Shards[i]))
	}
	return r
}

// reportSet fills in the set that the client counts on.
func (r *Report) reportSet(s *report.Survey) {
	c := s.Set
	switch {
	case c == nil && s.Unrecorded():
		r.Set.Note = "no set is recorded yet: the nodes record it on their own once all of them answer a client " +
			"that uses locks, and vote one guard time later; if no client has ever used them, \"quorate bootstrap\" " +
			"skips that wait"
		return
	case c == nil:
		r.Set.Note = "too few nodes show which set they are of: start those that are down, and look at what is " +
			"wrong with the others"
		return
	}
	r.Set = SetReport{
		Recorded: true, Stamp: string(c.Stamp), Epoch: c.Stamp.Epoch(), Since: c.Stamp.Since(),
		Members: c.Addrs(), Guard: c.Guard(), Retention: c.Retention(), Skew: c.Skew(), LongestTTL: c.LongestTTL(),
		Stage: Stage(c.Stage.String()),
	}
	for _, m := range c.Members {
		if len(m.Also) > 0 {
			if r.Set.Also == nil {
				r.Set.Also = map[string][]string{}
			}
			r.Set.Also[m.Addr] = slices.Clone(m.Also)
		}
		switch m.Role {
		case nodeset.Enters:
			r.Set.Entering = append(r.Set.Entering, m.Addr)
		case nodeset.Leaves:
			r.Set.Leaving = append(r.Set.Leaving, m.Addr)
		}
	}
	if c.Stage != nodeset.Stable {
		r.Set.Note = "the set is being changed; if no command is running, run the same \"quorate members\" " +
			"command again, or \"quorate members undo\""
	}
}
