// Package report is what an operator reads of the nodes: what Check has found
// out about them, and lines of the log that are not to be said twice. It asks
// no node: package core does, and fills a Node in.
package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Node is what Check finds out about one node.
// What is unknown has its zero value.
type Node struct {
	Index      int
	Addr       string
	Err        error
	Version    string
	Role       string
	AOF        bool
	Fsync      string
	Eviction   string
	Offset     time.Duration
	RoundTrip  time.Duration
	Recovering time.Duration
	CaughtUp   bool
	Repairing  *script.Repairing // what the client says that repairs it; nil: none does now
	Jumped     time.Duration
	JumpedAt   time.Time
	Refuses    error // why it refuses new locks; nil: it accepts them
	Warnings   []string
	Standing   string // how it stands to the set; empty: unknown
	Server     string // that the connection goes to
	Buckets    []int  // of a shard: the buckets that it has
	Shards     []Node // of a cluster: its servers that have buckets; the rest is the worst of them

	Replicas  int   // that may take its place while it goes on
	RepairErr error // why this client could not repair it
}

// Describe takes over what INFO says of the server. Replicas counts those of a
// master that goes on when it is cut off from them: see Warn.
func (r *Node) Describe(info string) {
	fields := InfoFields(info)
	for name, value := range fields {
		fields[name] = resp.OneLine(value)
	}
	r.Version, r.Role, r.Eviction = fields["redis_version"], fields["role"], fields["maxmemory_policy"]
	r.AOF = fields["aof_enabled"] == "1"
	// INFO has the second field where min-replicas-to-write is set.
	if _, stops := fields["min_slaves_good_slaves"]; !stops {
		r.Replicas, _ = strconv.Atoi(fields["connected_slaves"])
	}
}

// InfoFields returns the lines of an INFO.
func InfoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

// Evicts reports whether a maxmemory-policy may throw leases away. An empty one
// is unknown.
func Evicts(policy string) bool { return policy != "" && policy != "noeviction" }

// imprecision is by how much the median of the clocks may be wrong on a busy
// machine, beside the half of the round trip by which a node's own time may.
const imprecision = 50 * time.Millisecond

// Warn sets the warnings. Each says what is wrong, what follows from it and
// what to do. skew is that of the set.
func (r *Node) Warn(skew time.Duration) {
	var w []string
	if r.Role != "" && r.Role != "master" {
		w = append(w, "it is a "+r.Role+", not a master: list the "+
			"master")
	}
	if r.Refuses != nil {
		w = append(w, r.Refuses.Error())
	}
	if Evicts(r.Eviction) {
		w = append(w, "maxmemory-policy "+r.Eviction+" may discard leases; set noeviction")
	}
	if r.Replicas > 0 {
		w = append(w, fmt.Sprintf("it has %s and no min-replicas-to-write: "+
			"if a replica takes over while it is cut off, both vote for a while; "+
			"set min-replicas-to-write %d and min-replicas-max-lag 10 on it and on the replicas",
			fault.Count(r.Replicas, "replica"), r.Replicas))
	}
	if r.Offset.Abs() > skew+r.RoundTrip/2+imprecision {
		w = append(w, fmt.Sprintf("its clock differs from the median of the nodes' clocks by %v, more than "+
			"the skew of %v; correct the wrong clock (NTP)", r.Offset.Round(time.Millisecond), skew))
	}
	if r.Jumped != 0 {
		w = append(w, fmt.Sprintf("its clock jumped by %+v at %s; have NTP slew it instead of stepping it",
			r.Jumped.Round(time.Millisecond), r.JumpedAt.Format(time.TimeOnly)))
	}
	if r.Recovering > 0 {
		w = append(w, fmt.Sprintf("it is new or lost its data, and votes in %v",
			r.Recovering.Round(time.Millisecond)))
	}
	if !r.CaughtUp && r.Recovering == 0 {
		w = append(w, "it is new or lost its data and has not been repaired yet, so "+
			"Once, elections and Resize do not count it; "+r.lacks())
	}
	r.Warnings = w
}

// lacks says why a node that votes is not caught up, as far as that is known,
// and what to do about it. Another client's repair comes first: while it is
// under way an operator only has to wait, whatever has failed here.
func (r *Node) lacks() string {
	switch {
	case r.Repairing != nil:
		return r.Repairing.String() + "; wait"
	case r.RepairErr != nil:
		return "the last attempt failed: " + r.RepairErr.Error() + "; " + Remedy
	}
	return Remedy
}

// Votes reports whether the node answers and votes for new locks. An empty role is unknown:
// the user may not ask INFO, and the handshake refuses a replica only where it
// can tell.
func (r *Node) Votes() bool {
	return r.Err == nil && r.Refuses == nil && r.Recovering == 0 && (r.Role == "" || r.Role == "master")
}

// Remedy is what to do about a node that cannot be repaired.
const Remedy = "start the nodes that are down, and any connected client will repair it within seconds; " +
	"if they are permanently lost, run quorate members replace"
