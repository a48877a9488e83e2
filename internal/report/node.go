// Package report builds what an operator reads about the nodes: the results of
// Check, and the deduplication of log lines. It sends no requests; package core
// does, and fills in a Node.
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

// Node is the result of Check for one node. Unknown fields have the zero value.
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
	Repairing  *script.Repairing // the repair under way, as its client reports it; nil if there is none
	Jumped     time.Duration
	JumpedAt   time.Time
	Refuses    error // why it refuses new locks; nil: it accepts them
	Warnings   []string
	Membership string // its role in the set; empty if unknown
	Server     string // the server that the connection goes to
	Buckets    []int  // of a shard: its buckets
	Shards     []Node // of a cluster: its servers that have buckets; worsen combines their fields

	Keys     int // in the server's database; 0 if it has several
	Memory   int // that the server uses, in bytes
	Retained int // estimated number of tickets that are kept of names that are not locked

	Replicas  int   // replicas that may take over while it still runs; see Describe
	RepairErr error // why this client could not repair it
}

// Describe fills in r from a server's INFO. Replicas stays 0 if the master
// stops accepting writes once it is cut off from its replicas: see Warn.
func (r *Node) Describe(info string) {
	fields := InfoFields(info)
	for name, value := range fields {
		fields[name] = resp.OneLine(value)
	}
	r.Version, r.Role, r.Eviction = fields["redis_version"], fields["role"], fields["maxmemory_policy"]
	r.AOF = fields["aof_enabled"] == "1"
	r.Memory, _ = strconv.Atoi(fields["used_memory"])
	r.Keys = keysOf(fields)
	// INFO has this field only if min-replicas-to-write is set.
	if _, stops := fields["min_slaves_good_slaves"]; !stops {
		r.Replicas, _ = strconv.Atoi(fields["connected_slaves"])
	}
}

// InfoFields parses the text of INFO into its fields.
func InfoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

// Evicts reports whether a maxmemory-policy may discard leases. An empty policy
// is unknown and does not count.
func Evicts(policy string) bool { return policy != "" && policy != "noeviction" }

// imprecision is how far the median of the clocks may be off on a busy machine,
// in addition to half the round trip by which a node's own reading may be off.
const imprecision = 50 * time.Millisecond

// Warn sets r.Warnings. Each warning says what is wrong, what follows from it
// and what to do. skew is the set's.
func (r *Node) Warn(skew time.Duration) {
	var w []string
	if r.Role != "" && r.Role != "master" {
		w = append(w, "it is a "+r.Role+", not a master: list the master")
	}
	if r.Refuses != nil {
		w = append(w, r.Refuses.Error())
	}
	if Evicts(r.Eviction) {
		w = append(w, "maxmemory-policy "+r.Eviction+" may discard leases; set noeviction")
	}
	if r.Retained >= manyRetained && 2*r.Retained*retainedSize >= r.Memory {
		w = append(w,
			fmt.Sprintf("most of its memory (%d of %d MB) holds the tickets of about %d names that were locked "+
				"in the last retention time; keep them for less: quorate members set --retention 30s",
				r.Retained*retainedSize/1e6, r.Memory/1e6, r.Retained))
	}
	if r.Replicas > 0 {
		w = append(w, fmt.Sprintf("it has %s and no min-replicas-to-write: if a replica takes over while it is "+
			"cut off, both vote for a while; set min-replicas-to-write %d and min-replicas-max-lag 10 on it and on "+
			"the replicas",
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
		w = append(w, "it is new or lost its data and has not been repaired yet, so Once, elections and Resize "+
			"do not count it; "+r.lacks())
	}
	r.Warnings = w
}

// lacks says why a voting node is not caught up, as far as that is known, and
// what to do. Another client's repair comes first: as long as it runs, an
// operator only has to wait, whatever failed in this client.
func (r *Node) lacks() string {
	switch {
	case r.Repairing != nil:
		return r.Repairing.String() + "; wait"
	case r.RepairErr != nil:
		return "the last attempt failed: " + r.RepairErr.Error() + "; " + Remedy
	}
	return Remedy
}

// Votes reports whether the node answers, its guard time is over, and it accepts
// new locks. It does not say whether the set gives the node a vote: see Ready. The
// role is empty if the user may not run INFO. An empty role counts as a master,
// because the handshake refuses a replica if it can recognize one.
func (r *Node) Votes() bool {
	return r.Err == nil && r.Refuses == nil && r.Recovering == 0 && (r.Role == "" || r.Role == "master")
}

// Remedy says what to do about a node that cannot be repaired.
const Remedy = "start the nodes that are down, and any connected client will repair it within seconds; " +
	"if they are permanently lost, run quorate members replace"
