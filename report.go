package quorate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/report"
)

// A Report is what [Quorum.Check] found. It is a plain value, safe for
// concurrent use as long as no goroutine changes it.
type Report struct {
	Nodes  []NodeReport // in the order of New or Connect
	Quorum int          // nodes needed: N/2 + 1
	Ready  int          // nodes that answer, vote, and take new locks

	// MayRestart: one more node may be restarted, or lost with its data: all
	// vote and are caught up. Then a majority goes on to vote, nothing that was
	// recorded is lost, and no hold that no other client waits for. A hold that
	// others wait for may have a bare majority, and then ends with [ErrLost]:
	// that is seldom. With one node or two each restart ends holds.
	MayRestart bool

	Set SetReport // what the nodes have recorded of the set that they are
}

// A SetReport is what the nodes have recorded of the set that they are, see
// [Quorum.Bootstrap]. It is a plain value, safe for concurrent use as long as
// no goroutine changes it.
type SetReport struct {
	Recorded   bool          // from then on clients with another list are refused
	Stamp      string        // names the record; empty: no node has one
	Epoch      uint64        // which record of the set it is, from 1 on
	Since      time.Time     // when it was recorded, by the clock of the client that did
	Members    []string      // addresses of the members
	Guard      time.Duration // the settings that all clients share
	Retention  time.Duration
	Skew       time.Duration
	LongestTTL time.Duration // that the guard time allows
	Stage      Stage         // other than StageStable: the set is being changed, see package members
	Entering   []string      // addresses of the Members that are being added
	Leaving    []string      // and of those that are being removed
	Note       string        // the remedy, where no set is known, or the set is being changed

	Also map[string][]string // further addresses of a member, by the one in Members; nil: none has any
}

// Stage is how far a change of the set is. It is a plain value, safe for
// concurrent use.
type Stage string

// The stages.
const (
	// StageStable ("stable"): one set counts.
	StageStable Stage = "stable"
	// StageLearning ("learning"): the old nodes count, and the next set is
	// prepared.
	StageLearning Stage = "learning"
	// StageJoint ("joint"): the old nodes and the new ones count, a majority of
	// each.
	StageJoint Stage = "joint"
)

// Membership is how a node stands to the set. It is a plain value, safe for
// concurrent use.
type Membership string

// How a node may stand to the set. Only a member has a vote.
const (
	// NodeUnknown (""): it has not answered yet, or no set is known.
	NodeUnknown Membership = ""
	// NodeMember ("member"): it is the member of the report's Number.
	NodeMember Membership = "member"
	// NodeBlank ("blank"): it has recorded no set, or has lost its data.
	NodeBlank Membership = "blank"
	// NodeAccepted ("accepted"): its recording of the set has not ended.
	NodeAccepted Membership = "accepted"
	// NodeAhead ("ahead"): it alone shows a later configuration of the set.
	NodeAhead Membership = "ahead"
	// NodeRemoved ("removed"): it has left the set.
	NodeRemoved Membership = "removed"
	// NodeOtherMember ("another member's data"): it answers at the address of
	// another member.
	NodeOtherMember Membership = "another member's data"
	// NodeOtherSet ("another set's data"): it belongs to another set.
	NodeOtherSet Membership = "another set's data"
)

// A NodeReport is what [Quorum.Check] found about one node. It is a plain
// value, safe for concurrent use as long as no goroutine changes it.
type NodeReport struct {
	Node       string        // address
	Err        error         // why it could not be asked; the rest is then zero
	Version    string        // empty if the node refuses INFO: Role, AOF and Eviction are then unknown
	Role       string        // "master", or what it must not be, in Redis's words, as are Fsync and Eviction
	AOF        bool          // an append-only file is kept
	Fsync      string        // with AOF: always, everysec or no; empty if the node refuses CONFIG
	Eviction   string        // maxmemory-policy; must be noeviction
	Offset     time.Duration // its clock less the median of the nodes' clocks
	RoundTrip  time.Duration
	Recovering time.Duration // how much longer it does not vote
	Refuses    error         // why it takes no new locks, in the server's words: it is full, its disk is, …; nil: it takes them
	CaughtUp   bool          // it has all that was recorded; a node that lost its data is repaired after its guard time
	Repair     Repair        // how far that is
	Jumped     time.Duration // the last jump of its clock that this Quorum has seen; 0: none
	JumpedAt   time.Time     // when it was seen
	Number     int           // of the member; -1: it is none
	Membership Membership    // how it stands to the set
	Warnings   []string      // what is wrong, in words, with the remedy
	Shards     []NodeReport  // of a Redis Cluster: its servers that have buckets of names; the rest is then the worst of them
	Buckets    []int         // of a shard: the buckets that it has
}

// A Repair says how far the repair of a node is that is not caught up. It is a
// plain value, safe for concurrent use as long as no goroutine changes it.
type Repair struct {
	Running bool   // a client repairs the node now: this one or another
	Host    string // of that client
	PID     int
	Left    int // records that it has yet to bring there; -1: it lists them still
}

var errReplica = errors.New("is a replica, not a master")

// replica: it cannot be written to, and does not vote.
func (n *NodeReport) replica() bool { return n.Role != "" && n.Role != "master" }

// Check asks every node for what affects safety and says what is wrong with
// it. It has each node that votes write what a lock writes, at a key of its own
// below the prefix that expires within a second: a node may answer all
// questions and refuse every write. Connecting starts the guard time of a
// brand-new node, and repairs a node that lost its data from the others. Check
// waits until that has been tried.
//
// It waits for each node until ctx ends, and ten node timeouts at most. It
// fails with [ErrNoQuorum], beside the full report, when fewer than a majority
// of the nodes answer and vote; and with [ErrClosed] after [Quorum.Close].
func (q *Quorum) Check(ctx context.Context) (Report, error) {
	s, err := q.mustCore().Onlooker().Survey(ctx)
	if err != nil {
		return Report{}, wrapError("check", "", err)
	}
	r := Report{Quorum: len(s.Nodes)/2 + 1}
	if s.Set != nil {
		r.Quorum = s.Set.Quorums(protocol.Rules{}).Need()
	}
	r.Nodes = make([]NodeReport, len(s.Nodes))
	for i := range s.Nodes {
		r.Nodes[i] = nodeReport(&s.Nodes[i])
	}
	r.Ready, r.MayRestart = s.Ready, s.MayRestart
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

// report is what the core has found about a node, or a server of it.
func nodeReport(n *report.Node) NodeReport {
	r := NodeReport{
		Node: n.Addr, Err: n.Err, Version: n.Version, Role: n.Role, AOF: n.AOF, Fsync: n.Fsync, Eviction: n.Eviction, Offset: n.Offset, RoundTrip: n.RoundTrip,
		Recovering: n.Recovering, Refuses: n.Refuses, CaughtUp: n.CaughtUp, Jumped: n.Jumped, JumpedAt: n.JumpedAt, Warnings: n.Warnings, Buckets: n.Buckets,
		Membership: Membership(n.Standing), Number: n.Index,
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
		r.Set.Note = "no set of nodes is recorded: the nodes record it by themselves once all of them answer a client that uses locks, and vote a guard time later; if no client has ever used them, \"quorate bootstrap\" saves that wait"
		return
	case c == nil:
		r.Set.Note = "it is not known which set the nodes are, as too few of them say so: start those that are down, and look at what is wrong with the others"
		return
	}
	r.Set = SetReport{
		Recorded: true, Stamp: string(c.Stamp), Epoch: c.Stamp.Epoch(), Since: c.Stamp.Since(),
		Members: c.Addrs(), Guard: c.Guard(), Retention: c.Retention(), Skew: c.Skew(), LongestTTL: c.LongestTTL(), Stage: Stage(c.Stage.String()),
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
		r.Set.Note = "the set is being changed; if no client does that now, finish it by the same \"quorate members\" command once more, or run \"quorate members undo\""
	}
}
