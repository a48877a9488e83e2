package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/cmd/quorate/internal/board"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// patience bounds what concerns every node, also one that does not answer.
const patience = 5 * time.Second

func checkCommand() *cobra.Command {
	var t target
	var j checkJob
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Ask every node what affects safety, and say what is wrong",
		Long: `Asks every node for what affects safety and says what is wrong with it.

Exit status:
  0   one more node may be restarted, or fail with its data: a majority of the
      others votes and is caught up, and nothing is wrong with the nodes that
      answer. With one node or two, where no restart leaves a majority: all of
      them are ready
  1   locks can be acquired, but the next node must not be restarted yet, or
      something is wrong
  2   no majority votes: nothing can be locked
  64  the command line is wrong
  74  the report could not be written

A node that was restarted does not vote for the guard time. If it lost its data,
any connected client then brings it what was recorded, this command as well.
Until that is done the next node must keep its data. With --wait the command
waits for that, tells on the standard error what it waits for, and ignores
warnings that do not pass by themselves.

With --all every node must be ready and caught up. With --json the report is one
JSON document.`,
		Example: `  quorate check         # for monitoring
  quorate check --wait  # between two steps of a rolling restart`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") && !j.wait {
				return errors.New("check: --timeout is for --wait")
			}
			if j.timeout <= 0 {
				return errors.New("check: --timeout must be positive")
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, done, err := t.open(cmd.Context(), io.Discard) // the table says all
			if err != nil {
				return err
			}
			defer done()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			j.out, j.errs = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if status := j.run(ctx, q); status != 0 {
				return &exit{code: status}
			}
			return nil
		},
	}
	t.nodeFlags(cmd)
	t.guardFlag(cmd, " (default: the set's)")
	jsonFlag(cmd, &j.json)
	cmd.Flags().BoolVar(&j.all, "all", false, "every node must be ready, also where fewer would allow the next restart")
	cmd.Flags().BoolVar(&j.wait, "wait", false, "wait until the next node may be restarted")
	cmd.Flags().DurationVar(&j.timeout, "timeout", 10*time.Minute, "how long to wait at most, with --wait")
	return cmd
}

// tell prints the report, and returns the exit status.
func (j *checkJob) tell(r quorate.Report) int {
	bad := j.report(r)
	switch {
	case r.Ready < r.Quorum:
		return exitBroken
	case !j.safe(r) || bad && !j.wait:
		return exitDegraded
	}
	return 0
}

// report prints the report; see tell.
func (j *checkJob) report(r quorate.Report) (bad bool) {
	if !j.json {
		return tell(j.out, r)
	}
	printJSON(j.out, r)
	return lo.SomeBy(r.Nodes, func(n quorate.NodeReport) bool { return unfit(&n) })
}

// tell prints the report; bad says that a node answers and is not fit for its
// task.
func tell(w io.Writer, r quorate.Report) (bad bool) {
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
			fmt.Fprintf(w, "%s: %s\n", n.Node, inFlags(warning))
		}
		bad = bad || unfit(&n)
	}
	tellSet(w, r)
	if r.Ready >= r.Quorum {
		fmt.Fprintf(w, "%s: %s\n", board.Ready(r.Ready, len(r.Nodes), r.Quorum), spare(r))
		return bad
	}
	fmt.Fprintf(w, "%s: nothing can be locked.\n", board.Ready(r.Ready, len(r.Nodes), r.Quorum))
	return bad
}

// onTheWay is what an error says of the way to a node before the cause.
var onTheWay = regexp.MustCompile(`^not connected: (handshake with|connect to) \S+: `)

// cause says why a node cannot be asked.
func cause(err error) string { return inFlags(onTheWay.ReplaceAllString(err.Error(), "")) }

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
	fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, state(n), orDash(n.Version), orDash(n.Role), persistence, orDash(n.Eviction),
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
	case more <= 0:
		return "none may fail."
	case !r.MayRestart:
		return fmt.Sprintf("%d more may fail, but none may lose its data yet: do not restart the next one.", more)
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

func bootstrapCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Declare brand-new nodes ready, once, before their first use",
		Long: `Declares that the nodes are brand-new: that no lease was ever given on them, so
that they may vote at once instead of after their guard time. They record that
they are the set of this list, with --guard, --retention and --skew as settings
of the set, which all clients share.

Nodes that have recorded a set keep it, and nothing is changed. So a deployment
may run this each time.`,
		Args: cobra.NoArgs,
		RunE: t.asking(func(ctx context.Context, cmd *cobra.Command, q *quorate.Quorum) error {
			already := func(set []string) error {
				fmt.Fprintf(cmd.OutOrStdout(), "Already recorded, nothing changed: the set is %s.\n", strings.Join(set, " "))
				return nil
			}
			known, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			if c, err := core.CoreOf(q).Onlooker().Recorded(known); err == nil {
				return already(c.Addrs())
			}
			recorded, err := core.CoreOf(q).Record(ctx)
			if err = core.WrapError("bootstrap", "", err); errors.Is(err, quorate.ErrInvalid) {
				return &exit{1, plain(err)} // no node that answers later changes it
			} else if err != nil {
				return &exit{1, fmt.Errorf("%w\nEvery node must confirm; run it again when the others answer", plain(err))}
			}
			r, _ := q.Check(ctx)
			if !recorded { // the nodes have answered since, or another client was first
				return already(r.Set.Members)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Declared %s brand-new, with votes from now on.\n", fault.Count(len(r.Set.Members), "node"))
			fmt.Fprintf(cmd.OutOrStdout(), "The set is recorded, with a guard time of %v: clients with a ttl above %v are refused.\n", r.Set.Guard, r.Set.LongestTTL)
			return nil
		}),
	}
	t.nodeFlags(cmd)
	t.guardFlag(cmd, " (default: 20s)")
	t.sharedFlags(cmd, "5m", "2s")
	return cmd
}
