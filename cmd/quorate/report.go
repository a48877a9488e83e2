package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/samber/lo"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/fault"
)

// This file owns what is printed of the nodes and of their set.

// tell prints the report; bad says that a node answers and is not fit for its
// task.
func tell(w io.Writer, r quorate.Report) (bad bool) {
	r = cli.Clean(r)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "NODE\tSTATE\tVERSION\tROLE\tPERSISTENCE\tEVICTION\tCLOCK\tROUND TRIP")
	for _, n := range r.Nodes {
		row(tab, n.Node, &n)
		for _, shard := range n.Shards {
			row(tab, fmt.Sprintf("  %s, %d of the buckets", orDash(shard.Node), len(shard.Buckets)), &shard)
		}
	}
	_ = tab.Flush()
	fmt.Fprintln(w)
	tellCauses(w, r)
	for _, n := range r.Nodes {
		for _, warning := range n.Warnings {
			fmt.Fprintf(w, "%s: %s\n", n.Node, cli.InFlags(warning))
		}
		bad = bad || unfit(&n)
	}
	tellSet(w, r)
	if r.Ready >= r.Quorum {
		fmt.Fprintf(w, "%s: %s\n", board.Ready(r.Ready, r.Ready, len(r.Nodes), r.Quorum), spare(r))
		return bad
	}
	fmt.Fprintf(w, "%s: nothing can be locked.\n", board.Ready(joined(r), r.Ready, len(r.Nodes), r.Quorum))
	return bad
}

// joined is how many nodes are connected.
func joined(r quorate.Report) int {
	return lo.CountBy(r.Nodes, func(n quorate.NodeReport) bool { return n.Err == nil || fault.IsVerdict(n.Err) })
}

// tellCauses says why nodes cannot be asked. A node with the wrong data comes
// first: it is what an operator has to look at. Then comes each cause, once,
// and last those of nodes that answer.
func tellCauses(w io.Writer, r quorate.Report) {
	nodes, waiting := map[string][]string{}, map[string]int{}
	var causes []string
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Err == nil {
			continue
		}
		why := state(n) + ": " + cause(n.Err)
		if nodes[why] == nil && (n.Membership == quorate.NodeOtherMember || n.Membership == quorate.NodeOtherSet) {
			causes = slices.Insert(causes, 0, why)
		} else if nodes[why] == nil {
			causes = append(causes, why)
		}
		if state(n) == noVote {
			waiting[why] = 1
		}
		nodes[why] = append(nodes[why], n.Node)
	}
	slices.SortStableFunc(causes, func(a, b string) int { return cmp.Compare(waiting[a], waiting[b]) })
	for _, why := range causes {
		fmt.Fprintf(w, "%s %s\n", strings.Join(nodes[why], ", "), why)
	}
}

// onTheWay is what an error says of the way to a node before the cause.
var onTheWay = regexp.MustCompile(`^not connected: (handshake with|connect to) \S+: `)

// cause says why a node cannot be asked.
func cause(err error) string { return cli.InFlags(onTheWay.ReplaceAllString(err.Error(), "")) }

// row prints what is known of a node, or of a server of it.
func row(tab io.Writer, name string, n *quorate.NodeReport) {
	if n.Err != nil {
		fmt.Fprintf(tab, "%s\t%s\t-\t-\t-\t-\t-\t-\n", name, state(n))
		return
	}
	persistence := lo.Ternary(n.Version == "", "unknown", "no append-only file")
	if n.AOF {
		persistence = "append-only, fsync " + lo.Ternary(n.Fsync == "", "unknown", n.Fsync)
	}
	fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, state(n), orDash(n.Version), orDash(n.Role),
		persistence, orDash(n.Eviction),
		offset(n.Offset), n.RoundTrip.Round(10*time.Microsecond))
}

// unfit reports whether a node answers and is not fit for its task. That it is
// still within its guard time, or not repaired yet, is a warning too, but
// passes by itself.
func unfit(n *quorate.NodeReport) bool {
	if len(n.Shards) > 0 {
		return lo.SomeBy(n.Shards, func(s quorate.NodeReport) bool { return unfit(&s) })
	}
	return len(n.Warnings) > lo.Ternary(n.Recovering > 0 || !n.CaughtUp, 1, 0)
}

// spare says what the nodes that are ready allow.
func spare(r quorate.Report) string {
	more := r.Ready - r.Quorum
	switch {
	case more <= 0 && len(r.Nodes) == 1:
		return "no node may fail: without this one nothing can be locked."
	case more <= 0:
		return "no node may fail: with one more down nothing can be locked."
	case !r.MayRestart:
		return fmt.Sprintf("%d more may fail, but must not lose its data yet: do not restart the next one.", more)
	}
	return fmt.Sprintf("%d more may fail.", more)
}

// offset tells how far a clock is ahead or behind, as far as that can be
// measured.
func offset(d time.Duration) string {
	if d.Abs() < time.Millisecond {
		return "same"
	}
	return fmt.Sprintf("%+.3fs", d.Seconds())
}

func orDash(s string) string { return lo.Ternary(s == "", "-", s) }

// tellSet prints the set that the nodes have recorded, and which nodes do not
// belong to it.
func tellSet(w io.Writer, r quorate.Report) {
	s := &r.Set
	if s.Stamp != "" {
		fmt.Fprintf(w, "Set %s, recorded %s: %s\n", s.Stamp,
			s.Since.UTC().Format(time.DateTime+" MST"), strings.Join(s.Members, " "))
		for _, addr := range s.Members {
			if also := s.Also[addr]; len(also) > 0 {
				fmt.Fprintf(w, "%s can also be reached at %s\n", addr, strings.Join(also, " "))
			}
		}
		if s.Stage != quorate.StageStable {
			fmt.Fprintf(w, "The set is being changed (epoch %d): %s\n", s.Epoch, stages[s.Stage])
		}
		fmt.Fprintf(w, "Settings of the set: guard time %v, retention %v, skew %v, longest TTL %v\n", s.Guard,
			s.Retention, s.Skew, s.LongestTTL)
	}
	for i := range r.Nodes {
		if n := &r.Nodes[i]; s.Stamp != "" && n.Membership != quorate.NodeMember &&
			n.Membership != quorate.NodeUnknown {
			fmt.Fprintf(w, "%s in the set: %s\n", n.Node, standing(n))
		}
	}
	if s.Note != "" {
		fmt.Fprintf(w, "Note: %s.\n", s.Note)
	}
}

// noVote is the state of a node that answers, and does not count in the set.
const noVote = "no vote"

// refusesLocks is the state of a node that answers, and refuses what a lock
// writes.
const refusesLocks = "refuses locks"

// state says in a few words how a node is.
func state(n *quorate.NodeReport) string {
	switch {
	case n.Err != nil && fault.Refused(n.Err):
		return "refused"
	case fault.IsVerdict(n.Err):
		return noVote
	case n.Err != nil:
		return "unreachable"
	case n.Refuses != nil:
		return refusesLocks
	case n.Recovering > 0:
		return "votes in " + n.Recovering.Round(100*time.Millisecond).String()
	case n.CaughtUp:
		return "ready"
	case !n.Repair.Running:
		return "not repaired yet"
	case n.Repair.Left < 0:
		return "being repaired"
	}
	return "being repaired, " + fault.Count(n.Repair.Left, "record") + " left"
}

// standing says in a few words how a node stands to the set.
func standing(n *quorate.NodeReport) string {
	switch n.Membership {
	case quorate.NodeMember:
		return fmt.Sprintf("member %d", n.Number)
	case quorate.NodeAccepted:
		return "accepted, not confirmed"
	case quorate.NodeUnknown:
		return "unknown"
	}
	return "no: " + string(n.Membership)
}
